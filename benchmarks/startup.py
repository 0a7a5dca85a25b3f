"""What it costs to begin: CPU seconds and memory of importing, of `--help` and of every verb on a small run.

    python benchmarks/startup.py            measure, on a machine that is idle, and compare with what was accepted
    python benchmarks/startup.py --accept   measure, and let this be what later ones are compared with
    python benchmarks/startup.py --table    only print what there is
    python benchmarks/startup.py --try      one round, on any machine, nothing published

Each line is a process of its own, children included: CPU time (user and system), wall time and the largest resident
memory, medians over the rounds. "train, first step" ends with the report of one step; beside digits the models are the
smallest there are, so what remains is the start. A verb that needs over 30 % more than was accepted ends this command
with exit code 1: benchmarks/results/startup.json is the regression file that `make bench` checks.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.engine_processes import watched
from benchmarks.jobs import RESULTS, require_idle, told, write_whole
from benchmarks.timing import machine
from mirada.compare.outcome import markdown
from mirada.train.files import read_json

RESULTS_FILE = RESULTS / "startup.json"
ROUNDS = 3
SLACK = 1.3  # what may be lost before it is called a loss
SMALLEST = (0.05, 10.0)  # CPU seconds and MB that a difference must have to be one
TINY = (
    *("system.arguments.dim=16", "system.arguments.depth=1", "system.arguments.num_heads=2"),
    *("train.steps=1", "train.evaluations=1", "baseline.name=none"),
)


def commands(folder: Path) -> dict[str, list[str]]:
    """In order: later ones use the run, the export and the picture that earlier ones leave in `folder`."""
    mirada, run, photo = [sys.executable, "-m", "mirada"], str(folder / "run"), str(folder / "photo.png")
    return {
        "import mirada": [sys.executable, "-c", "import mirada"],
        "--help": [*mirada, "--help"],
        "train --help": [*mirada, "train", "--help"],
        "systems": [*mirada, "systems"],
        "check": [*mirada, "check", "digits"],
        "train, first step": [*mirada, "train", "digits", "--quiet", "--out", run, *TINY],
        "evaluate": [*mirada, "evaluate", run, "--quiet"],
        "predict": [*mirada, "predict", run, photo],
        "explain": [*mirada, "explain", run, photo, "--quiet", "--out", str(folder / "explained")],
        "report": [*mirada, "report", run],
        "export to ONNX": [*mirada, "export", run, "--to", "onnx", "--quiet", "-o", str(folder / "onnx")],
        "predict, exported": [*mirada, "predict", str(folder / "onnx"), photo],
    }


def measured(command: list[str]) -> dict[str, float]:
    """Of one process and its children."""
    used = watched(command)
    return {"cpu_seconds": used.cpu_seconds, "seconds": used.seconds, "mb": used.peak_mb}


def measure_all(rounds: int) -> dict[str, dict[str, float]]:
    """Round after round over all verbs, each in a folder of its own, after one that compiles modules."""
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            make_photo(folder / "photo.png")
            for name, command in commands(folder).items():
                taken = measured(command)
                if number:
                    found.setdefault(name, []).append(taken)
        print(f"round {number} of {rounds} is done", flush=True)
    return {
        name: {key: round(statistics.median(one[key] for one in all_rounds), 3) for key in all_rounds[0]}
        for name, all_rounds in found.items()
    }


def make_photo(path: Path) -> None:
    import numpy as np
    from PIL import Image

    Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)).save(path)


def losses(found: dict[str, dict], accepted: dict[str, dict]) -> list[str]:
    """Verbs that need clearly more than was accepted, a sentence for each."""
    lost = []
    for name, now in found.items():
        for (key, unit), smallest in zip((("cpu_seconds", "s of CPU"), ("mb", "MB")), SMALLEST, strict=True):
            before = accepted.get(name, now)[key]
            if now[key] > SLACK * before and now[key] - before > smallest:
                lost.append(f"{name}: {now[key]:.2f} {unit}, and {before:.2f} were accepted")
    return lost


def startup_text(results: dict) -> str:
    """The section of the page."""
    if not results:
        return ""
    made = results["machine"]
    return (
        "## Starting\n\n`python benchmarks/startup.py`: a process for each line, medians over the rounds, on "
        f"{made['processor']}, torch {made['torch']}; digits and the smallest of models, so that what remains is the "
        f"start. `make bench` fails where a verb needs {100 * (SLACK - 1):.0f} % more than this.\n\n"
    ) + markdown(cells(results["verbs"]))


def cells(verbs: dict[str, dict]) -> list[dict[str, str]]:
    return [
        {
            "verb": name,
            "CPU": f"{one['cpu_seconds']:.2f} s",
            "wall": f"{one['seconds']:.2f} s",
            "memory": f"{one['mb']:.0f} MB",
        }
        for name, one in verbs.items()
    ]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="later ones are compared with this")
    parser.add_argument("--table", action="store_true", help="print what there is and stop")
    parser.add_argument("--try", action="store_true", dest="is_tried", help="one round, nothing published")
    args = parser.parse_args(words)
    former = read_json(RESULTS_FILE) if RESULTS_FILE.exists() else {}
    if args.table:
        print(markdown(cells(former.get("verbs", {}))))
        return
    if not args.is_tried:
        require_idle()
    found = measure_all(1 if args.is_tried else ROUNDS)
    print(markdown(cells(found)))
    if args.is_tried:
        return
    if args.accept or not former:
        write_whole(RESULTS_FILE, {"machine": machine(), "rounds": ROUNDS, "verbs": found})
    elif former["machine"] != machine():
        print("What was accepted was measured on another machine, so nothing is compared; --accept takes this one.")
    elif lost := losses(found, former["verbs"]):
        sys.exit("\n".join(lost))


if __name__ == "__main__":
    told(main)
