"""What the measurements page says about busy machines, several processes and precision."""

from __future__ import annotations

import statistics

from benchmarks.timing import Timing, speed_up

POLICY_NAMES = {"mirada": "Mirada's policy", "torch": "torch's defaults"}


def busy_text(results: dict) -> str:
    """Waiting times beside neighbours; a ratio only where the rounds agree on which side is faster."""
    if not results:
        return ""
    counts = list(results["predict"]["mirada"])
    rows = []
    for what, title in (("predict", "one image"), ("train", f"a training step of {results['batch']}")):
        for policy, name in POLICY_NAMES.items():
            cells = [_times(results[what][policy][count], with_p95=what == "predict") for count in counts]
            rows.append([f"{title}, {name}", *cells])
    head = ["p50 / p95, or p50", *(f"{count} busy neighbour{'s' * (count != '1')}" for count in counts)]
    machine, most = results["machine"], counts[-1]
    quiet, busy = (p50s(results["predict"]["mirada"][count]) for count in (counts[0], most))
    against = _told_ratio(paired(p50s(results["train"]["mirada"][most]), p50s(results["train"]["torch"][most])))
    return (
        "## A busy machine\n\n`python benchmarks/busy.py`: a ViT of dim 192 and 12 layers at 32 px on "
        f"{results['cores']} cores of {machine['processor']}, torch {machine['torch']}; in alternating processes, "
        f"{len(quiet)} rounds, wall time; a neighbour does nothing but use a core.\n\n"
        f"{_table(head, rows)}\nOne image beside {most} neighbours takes "
        f"{_told_ratio(paired(quiet, busy))} the time it takes alone. A training step beside them is {against} as fast "
        "as by torch's defaults.\n"
    )


def precision_text(results: dict) -> str:
    """What the guard chose, beside the steps that were timed afterwards."""
    if not results:
        return ""
    rows = [
        [
            label,
            *(f"{found['ms'][precision]:.1f} ms" for precision in ("float32", "bfloat16")),
            _told_ratio(found["bfloat16_faster"]),
            found["chosen"],
        ]
        for label, found in results["models"].items()
    ]
    machine = results["machine"]
    return (
        "## Precision of training\n\n`python benchmarks/precision.py`: training steps in turns, "
        f"{results['threads']} threads of {machine['processor']}, torch {machine['torch']}, wall time, and what "
        "`train.precision=auto` had chosen before. It takes bfloat16 only for a clear gain.\n\n"
    ) + _table(["model", "float32", "bfloat16", "bfloat16 is faster by", "chosen"], rows)


def scale_text(results: dict) -> str:
    """Two processes against one."""
    if not results:
        return ""
    rows = []
    for part, found in ((part, results[part]) for part in ("train", "large", "map") if part in results):
        what = (
            "`mirada map` by Dask, the whole map" if part == "map" else f"training, a step of {found['batch']} images"
        )
        one, two = (_seconds(statistics.median(seconds)) for seconds in found["seconds"])
        same = "yes" if found["agree"] else "**no**"
        limit = f"{statistics.median(found['limits']):.2f}×" if "limits" in found else ""
        rows.append([what, one, two, _told_ratio(found["ratio"]), limit, str(len(found["seconds"][0])), same])
    trained = [results[part] for part in ("train", "large") if part in results]
    machine, differences = results["machine"], [found["difference"] for found in trained]
    is_older = any("limits" not in found for found in trained)
    older = " Trainings without it were measured by an earlier version of the update." if is_older else ""
    alike = f"; losses differ by at most {max(differences):.0e} of their size" if differences else ""
    return (
        "## Several processes\n\n`python benchmarks/scale_out.py`: two processes of one thread against one process of "
        f"one thread, in turns, on {results['cores']} cores of {machine['processor']}, torch {machine['torch']}. "
        "Training: a ViT of dim 192 and 4 layers at 32 px by `torchrun`, the same batches in "
        f"all{alike}. Possible is what two processes reach that share nothing and multiply matrices, in the same "
        f"rounds.{older}\n\n" + _table(["", "one", "two", "faster", "possible", "rounds", "same result"], rows)
    )


def p50s(rounds: list[dict]) -> list[float]:
    return [each["p50_ms"] for each in rounds]


def _times(rounds: list[dict], with_p95: bool) -> str:
    p50, p95 = (statistics.median(each[name] for each in rounds) for name in ("p50_ms", "p95_ms"))
    return f"{p50:.0f} / {p95:.0f} ms" if with_p95 else f"{p50:.0f} ms"


def paired(these: list[float], others: list[float]) -> list[float]:
    """How many times these the others are, by rounds: median, and the quartiles around it."""
    ratio = speed_up(Timing(tuple(these)), Timing(tuple(others)))
    return [ratio.median, ratio.low, ratio.high]


def _told_ratio(ratio: list[float]) -> str:
    median, low, high = ratio
    if low <= 1 <= high:
        return f"about once (a tie, {low:.2f}–{high:.2f})"
    return f"{median:.2f}× ({low:.2f}–{high:.2f})"


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
