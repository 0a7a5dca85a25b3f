"""What the measurements page says about prediction by other engines: benchmarks/engines.py."""

from __future__ import annotations

NAMES = {"small": "small ViT", "large": "ViT-B"}


def engines_text(results: dict) -> str:
    text = "".join(part(results) for part in (_one_image, _files, _start))
    if not text:
        return ""
    machine = results["machine"]
    return (
        f"## Prediction by other engines\n\n`python benchmarks/engines.py`: {results['cores']} cores of "
        f"{machine['processor']}, torch {machine['torch']}. Ratios are timm's time over ours, the median of pairs with "
        f"their quartiles.\n\n{text}"
    )


def _one_image(results: dict) -> str:
    text = ""
    for job, title in NAMES.items():
        if not (found := results.get(job)):
            continue
        shape = found["shape"]
        text += (
            f"One image at a time, {title} ({shape['image_size']} px, patch {shape['patch_size']}, dim {shape['dim']}, "
            f"depth {shape['depth']}, {found['num_parameters']:,} parameters), each engine "
            f"in a process of its own, in turns, wall time, {found['rounds']} rounds of {found['calls']} images; the "
            "weights are random, so int8's difference says little of trained ones:\n\n"
        )
        rows = [
            [
                name,
                f"{median:.2f} ms ({low:.2f}–{high:.2f})",
                _ratio(found["faster_than_timm"].get(name)),
                f"{found['difference'][name]:.1g}" if name in found["difference"] else "",
            ]
            for name, (median, low, high) in found["ms"].items()
        ]
        text += _table(["engine", "time", "faster than timm", "largest difference to torch"], rows) + "\n"
    return text


def _files(results: dict) -> str:
    if not (found := results.get("files")):
        return ""
    rows = [
        [
            name,
            f"{used['seconds']:.1f} s",
            f"{found['num_files'] / used['seconds']:.0f}",
            f"{used['cpu_seconds']:.1f} s",
            _ratio(found["faster_than_timm"].get(name)),
        ]
        for name, used in found["used"].items()
    ]
    shape, rounded = found["shape"], found["int8"]
    return (
        (
            f"{found['num_files']:,} JPEG files of {found['size']} px, decoding included, by `mirada predict RUN FILES "
            f"-o answers.csv` (`vit`, patch {shape['patch_size']}, dim {shape['dim']}, depth {shape['depth']}) and a "
            "script of timm with a DataLoader of 2 workers, alternating processes from start to end. Of the "
            f"{rounded['num_held_out']} held-out photos this model, which learned for a moment how blurred a photo is, "
            f"tells {100 * rounded['float32']:.1f} % right in float32 and {100 * rounded['int8']:.1f} % in int8:\n\n"
        )
        + _table(["", "time", "files per second", "CPU time", "faster than timm"], rows)
        + "\n"
    )


def mask_engines_text(results: dict) -> str:
    """benchmarks/mask_engines.py"""
    if not results:
        return ""
    machine, sizes = results["machine"], results["sizes"]
    rows = [
        [
            f"`{system}:micro`",
            engine,
            f"{median:.1f} ms ({low:.1f}–{high:.1f})",
            _ratio(found["faster_than_torch"].get(engine)),
            f"{found['difference'][engine]:.0e}" if engine in found["difference"] else "",
        ]
        for system, found in results["systems"].items()
        for engine, (median, low, high) in found["ms"].items()
    ]
    return (
        f"## Masks by other engines\n\n`python benchmarks/mask_engines.py`: one image of {sizes['image_size']} px at a "
        f"time, {results['cores']} cores of {machine['processor']}, torch {machine['torch']}; each engine in a process "
        f"of its own, in turns, wall time, {sizes['rounds']} rounds of {sizes['calls']} images. A ratio is torch's "
        "time over the engine's.\n\n"
        + _table(["system", "engine", "time", "faster than torch", "largest difference to torch"], rows)
    )


ROUNDED = {"preset": "`vit` by the preset", "tutorial": "tutorial's ViT", "vit-b": "ViT-B/16 of 16 patches"}


def rounding_text(found: list[dict]) -> str:
    """benchmarks/rounding.py"""
    if not found:
        return ""
    rows = [
        [
            each["dataset"],
            ROUNDED[each["contender"]],
            f"{each['num_parameters']:,}",
            f"{each['steps']:,}",
            *_both_scores(each),
        ]
        for each in found
    ]
    return (
        "## Accuracy in 8 bits\n\n`python benchmarks/rounding.py`: models trained from scratch for so many steps, then "
        "`mirada export --to onnx --precision int8`; accuracy on the held-out images. Where more than half a point is "
        "lost, nothing is written.\n\n"
        + _table(["data", "model", "parameters", "steps", "held out", "float32", "int8", "change in points"], rows)
    )


def _both_scores(found: dict) -> list[str]:
    if "refused" in found:
        return ["", "", f"refused: {found['refused']}", ""]
    before, after = (100 * found[precision] for precision in ("float32", "int8"))
    return [f"{found['num_held_out']:,}", f"{before:.2f} %", f"{after:.2f} %", f"{after - before:+.2f}"]


def _start(results: dict) -> str:
    if not (found := results.get("start")):
        return ""
    rows = [
        [name, f"{used['cpu_seconds']:.2f} s", f"{used['seconds']:.2f} s", f"{used['peak_mb']:.0f} MB"]
        for name, used in found["used"].items()
    ]
    return "The first answer of a new process, about one photo:\n\n" + _table(
        ["", "CPU time", "time", "peak memory"], rows
    )


def _ratio(ratio: list[float] | None) -> str:
    if ratio is None:
        return ""
    median, low, high = ratio
    said = "tie" if low <= 1 <= high else f"{median:.2f}×"
    return f"{said} ({low:.2f}–{high:.2f})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows]) + "\n"
