"""Masks: TransUNet against U-Net at equal time, with and without skips, by `mirada compare`.

    python benchmarks/masks.py --calibrate     only time the steps of all, in turns, on an idle machine
    python benchmarks/masks.py                 everything that is missing: nuclei 5 minutes and 3 seeds, Pets 10 and 1
    python benchmarks/masks.py --table         only print what there is
    python benchmarks/masks.py --try 3         three steps each, in folders of its own

nuclei   334 microscope images of cells (Data Science Bowl 2018), at 128 px; the split is drawn
pets     2,590 photographs with trimaps: pet, border, background, at 128 px; as divided by whoever made them

Trainings are kept in benchmarks/runs/ and continued where they stopped, numbers in benchmarks/results/masks.json.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.contests import Budget, Measurement, add_options, measure_all
from benchmarks.jobs import DATA, PETS, RESULTS, RUNS, told

NUCLEI = DATA / "masks" / "nuclei_dsb2018_256.npz"
ENTRANTS = (
    "transunet: transunet:micro",
    "transunet without skips: transunet:micro system.arguments.num_skips=0",
    "unet: unet:micro",
    "unet without skips: unet:micro system.arguments.num_skips=0",
)
SETTINGS = ("data.image_size=[128,128]", "train.evaluations=10")
OF_PETS = ("data.classes=[pet, background, border]",)


def measurements(pets: Path, runs: Path, minutes: tuple[float, float], steps: int | None) -> dict[str, Measurement]:
    of_nuclei, of_pets = (Budget(length, seeds, steps) for length, seeds in zip(minutes, (3, 1), strict=True))
    return {
        "nuclei": Measurement(runs / "nuclei", ENTRANTS, NUCLEI, "masks", SETTINGS, of_nuclei),
        "pets": Measurement(runs / "pets", ENTRANTS, pets, "masks", (*SETTINGS, *OF_PETS), of_pets),
    }


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, nargs=2, default=(5.0, 10.0), help="of nuclei and of pets")
    add_options(parser, ["nuclei", "pets"])
    args = parser.parse_args(words)
    for source in (NUCLEI, PETS):
        if not source.exists():
            sys.exit(f"{source} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    runs = RUNS / ("masks" if args.steps is None else "masks-try")
    results_file = (RESULTS if args.steps is None else runs) / "masks.json"
    found = measurements(unpacked_pets(RUNS / "data"), runs, tuple(args.minutes), args.steps)
    measure_all(found, args, results_file)


def unpacked_pets(folder: Path) -> Path:
    """train and test, each with images and trimaps."""
    if not (folder / "pets-masks").exists():
        with tarfile.open(PETS) as tar:
            tar.extractall(folder / "pets-masks.partial", filter="data")
        (folder / "pets-masks.partial").rename(folder / "pets-masks")
    return folder / "pets-masks"


if __name__ == "__main__":
    told(main)
