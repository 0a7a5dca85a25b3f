"""All systems for images on CIFAR-10 (20,000 to train on, 5,000 to test), the same minutes each, by `mirada compare`.

    python benchmarks/systems_table.py --calibrate     only time the steps of all systems, in turns, on an idle machine
    python benchmarks/systems_table.py                 everything that is missing: 3 minutes each, 2 seeds
    python benchmarks/systems_table.py --table         only print what there is
    python benchmarks/systems_table.py --try 3         three steps each, in a folder of its own

All have the data, augmentation, schedule and batches of the preset medium-data, AdamW, and the learning rate of
their card.
Trainings are kept in benchmarks/runs/ and continued where they stopped, numbers in benchmarks/results/systems.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.contests import Budget, Measurement, add_options, measure_all
from benchmarks.jobs import CIFAR10, RESULTS, RUNS, told

# The named size whose parameters have the ratio nearest to 1 to those of vit:micro (632,138); of resnet, whose smallest
# has 11 million, a narrower one.
PLAIN_VIT = " ".join(
    [
        *("vit:micro", "system.arguments.stem=conv", "system.arguments.patch_size=null", "system.arguments.depth=4"),
        *("system.arguments.pooling=sequence", "system.arguments.layer_scale=null", "train.learning_rate=1e-3"),
    ]
)
CLASSIFIERS = (
    f"vit:micro: {PLAIN_VIT}",  # without what the preset changes of this size
    "vit:micro, preset: preset train.learning_rate=4e-3",
    "vit_hybrid:micro",
    "deit:micro",
    "deepvit:nano",
    "t2t_vit:micro",
    "swin:micro",
    "mvit:micro",
    "cvt:nano",
    "convmixer:256/8",
    "cnn:mini",
    "resnet:18-cifar, dim 16: resnet:18-cifar system.arguments.dim=16",
)
OF_PIXELS = ("image_gpt:nano", "image_gpt:micro")  # they learn how images look, not their classes
SETTINGS = ("data.val=0.05", "train.evaluations=10", "train.optimiser=adamw")


def measurements(source: Path, runs: Path, budget: Budget) -> dict[str, Measurement]:
    return {
        "classes": Measurement(runs / "classes", CLASSIFIERS, source, "medium-data", SETTINGS, budget),
        "pixels": Measurement(runs / "pixels", OF_PIXELS, source, "pixels", SETTINGS, budget),
    }


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=2)
    add_options(parser, ["classes", "pixels"])
    args = parser.parse_args(words)
    if not CIFAR10.exists():
        sys.exit(f"{CIFAR10} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    runs = RUNS / ("systems" if args.steps is None else "systems-try")
    results_file = (RESULTS if args.steps is None else runs) / "systems.json"
    found = measurements(CIFAR10, runs, Budget(args.minutes, args.seeds, args.steps))
    measure_all(found, args, results_file)


if __name__ == "__main__":
    told(main)
