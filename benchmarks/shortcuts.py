"""Ways to spend fewer operations on the same accuracy, each beside the preset in the same minutes, on CIFAR-10.

    python benchmarks/shortcuts.py --calibrate      only the minute before, and the steps of all, on an idle machine
    python benchmarks/shortcuts.py                  everything that is missing: about half an hour for one seed
    python benchmarks/shortcuts.py --table          only print what there is
    python benchmarks/shortcuts.py --try 3          three steps each, in a folder of its own

settings   The preset medium-data for 3 minutes, and with one choice changed: no moving average of the weights, larger
           batches, smaller patches, a share of the patches only (PatchDropout, Liu 2022).
starts     A minute of something else and then 2 of the preset, beside 2 minutes of it from scratch; in "settings" it
           has all 3. The minute before: by how many quarters an image is turned (self-supervised, Gidaris 2018), or
           the same images and classes at 24 px, which cost half as much (progressive resolution).

Trainings are kept in benchmarks/runs/ and continued where they stopped, numbers in benchmarks/results/shortcuts.json.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.contests import Budget, Measurement, Says, add_options, measure_all
from benchmarks.jobs import CIFAR10, RESULTS, RUNS, require_idle, told
from mirada.train.folder import RunFolder
from mirada.verbs.train import train

PRESET = "medium-data"
MINUTES, BEFORE = 3.0, 1.0
SETTINGS = ("data.val=0.05", "train.evaluations=10")
CHANGES = (
    "preset: preset",
    "no moving average: preset train.average=0",
    "batches of 128: preset train.batch_size=128",
    "patches of 4 px: preset system.arguments.patch_size=4",
    "patches of 4 px, half of them: preset system.arguments.patch_size=4 system.arguments.patch_keep=0.5",
    "half of the patches: preset system.arguments.patch_keep=0.5",
)
# What is turned must not be mirrored: a mirrored quarter to the left is a quarter to the right.
GIVERS = {"quarters": ("augment.flip=0",), "small": ("data.image_size=[24,24]", "system.arguments.patch_size=8")}
RESTED = "train.optimiser=muon train.learning_rate=6e-3"  # the preset's, where `--from` would be gentler


def measurements(source: Path, runs: Path, budget: Budget) -> dict[str, Measurement]:
    quarters, small = (shlex.quote(str(runs / giver)) for giver in GIVERS)
    starts = (
        "from scratch: preset",
        f"after a minute of turned images: preset start={quarters} {RESTED}",
        f"after a minute of images of 24 px: preset start={small} {RESTED}",
    )
    rest = Budget(budget.minutes - BEFORE, budget.seeds, budget.steps)
    return {
        "settings": Measurement(runs / "settings", CHANGES, source, PRESET, SETTINGS, budget),
        "starts": Measurement(runs / "starts", starts, source, PRESET, SETTINGS, rest),
    }


def prepare_starts(source: Path, runs: Path, steps: int | None) -> None:
    """The minute before, by itself on the machine, of each that is not there yet."""
    for name, changes in GIVERS.items():
        if RunFolder(runs / name).is_finished:
            continue
        if steps is None:
            require_idle()
        length = f"train.minutes={BEFORE:g}" if steps is None else f"train.steps={steps}"
        settings = [*SETTINGS, *changes, "baseline.name=none", length]
        data = turned(source, runs / "turned.npz") if name == "quarters" else source
        train(data, preset=PRESET, settings=settings, out=runs / name, watcher=Says())


def turned(source: Path, path: Path) -> Path:
    """Every image in one of four positions, which is its class; images to train on remain so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    content: dict[str, np.ndarray] = {}
    with np.load(source) as found:
        for split in ("train", "test"):
            images = found[f"x_{split}"]
            quarters = draw.integers(0, 4, len(images))
            content[f"x_{split}"] = np.stack([np.rot90(image, k) for image, k in zip(images, quarters, strict=True)])
            content[f"y_{split}"] = quarters
    np.savez(path, **content)
    return path


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    add_options(parser, ["settings", "starts"])
    args = parser.parse_args(words)
    if not CIFAR10.exists():
        sys.exit(f"{CIFAR10} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    runs = RUNS / ("shortcuts" if args.steps is None else "shortcuts-try")
    results_file = (RESULTS if args.steps is None else runs) / "shortcuts.json"
    if not args.table and args.only != "settings":
        prepare_starts(CIFAR10, runs, args.steps)
    measure_all(measurements(CIFAR10, runs, Budget(MINUTES, args.seeds, args.steps)), args, results_file)


if __name__ == "__main__":
    told(main)
