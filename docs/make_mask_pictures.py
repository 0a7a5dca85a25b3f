"""Makes the pictures of docs/masks.md: `python docs/make_mask_pictures.py [RUNS]`.

RUNS is what benchmarks/masks.py trained, benchmarks/runs/masks unless another folder is given.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from mirada.report.examples import Tile, montage
from mirada.report.held_out import displayable
from mirada.report.wording import decimal
from mirada.tasks.judged_masks import JudgedMasks
from mirada.tasks.mask_colours import coloured
from mirada.train.folder import RunFolder

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "images" / "masks"
ENTRANTS = ("transunet", "transunet without skips", "unet", "unet without skips")
NUM_WORST, NUM_BEST = 1, 2  # of the first entrant
WIDTH = 1100


def main(runs: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in ("nuclei", "pets"):
        folders = {entrant: RunFolder(runs / name / entrant.replace(" ", "-") / "seed-0") for entrant in ENTRANTS}
        drawing = montage(name, tiles(folders), num_columns=2 + len(ENTRANTS))
        with Image.open(io.BytesIO(drawing.light)) as image:
            small = image.convert("RGB")
            small.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
            small.quantize(200, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def tiles(folders: dict[str, RunFolder]) -> list[Tile]:
    """A row for each image: itself, its mask, and what every entrant says of it, with its Dice."""
    first = next(iter(folders.values()))
    names = first.read_data()["class_names"]
    masks = {entrant: JudgedMasks.read(folder.masks) for entrant, folder in folders.items()}
    dice = {entrant: dice_of(folder) for entrant, folder in folders.items()}
    judged = next(iter(masks.values()))
    for other in masks.values():
        assert np.array_equal(other.rows, judged.rows), "not the same test images"
    count = len(judged.shown)
    found = []
    for number in (*range(NUM_WORST), *range(count - NUM_BEST, count)):
        place = judged.shown[number]
        picture = displayable(judged.images[number].transpose(1, 2, 0))
        found += [
            Tile(picture, "", (("", "image"),), None),
            Tile(coloured(picture, judged.targets[place], names), "", (("", "true mask"),), None),
        ]
        for entrant, of_entrant in masks.items():
            said = ((entrant.replace("without", "w/o"), ""), ("Dice", decimal(dice[entrant][place])))
            found.append(Tile(coloured(picture, of_entrant.predicted[place], names), "", said, None))
    return found


def dice_of(folder: RunFolder) -> list[float]:
    with open(folder.predictions, newline="", encoding="utf-8") as file:
        return [float(row["dice"] or "nan") for row in csv.DictReader(file)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "benchmarks" / "runs" / "masks")
