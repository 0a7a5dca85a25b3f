"""A large image in tiles: memory, and whether what is said near the seams of tiles is as steady as elsewhere.

    python benchmarks/mask_tiles.py              6,000 × 4,000 pixels, `unet` and `transunet`; a quarter of an hour
    python benchmarks/mask_tiles.py --try 2      two steps of training, a small image; nothing is kept

Both systems learn nuclei on tiles of 128 px for two minutes. The image is a mosaic of the test images. The seams of
tiles lie elsewhere if the image begins elsewhere: begun half a tile later, the same pixels are asked again.
Disagreement is the share of pixels whose class changes, of those near a seam of either tiling (within the strip that
tiles share) and of those inside tiles of both. What sees the new border of the image is left out. For `unet`, whose
tiles have all that it sees around them, nothing may change.

Numbers go to benchmarks/results/mask_tiles.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.jobs import RESULTS, RUNS, told, write_whole
from benchmarks.map_memory import Memory
from benchmarks.masks import NUCLEI
from benchmarks.timing import machine
from mirada.train.folder import RunFolder
from mirada.verbs.masks.prepare import prepare_masks
from mirada.verbs.masks.trained import TrainedMasks, masks_run
from mirada.verbs.masks.windows import Plan, plan_for
from mirada.verbs.train import resume, train

SYSTEMS = ("unet:micro", "transunet:micro")
SIZE = (4000, 6000)
PART = (1500, 2000)  # of it, asked twice
SMALL = (640, 720)  # to try it out: a seam of `unet`, and pixels that do not see the new border
STRIDE = 16  # of both systems: windows that begin at its multiples see the same patches
SETTINGS = ("data.fit=tile", "data.image_size=[128,128]", "baseline.name=none", "train.evaluations=4")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", type=int, dest="steps", help="so many steps of training, a small image, nothing kept")
    args = parser.parse_args(words)
    if not NUCLEI.exists():
        sys.exit(f"{NUCLEI} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    size = SIZE if args.steps is None else SMALL
    runs = RUNS / ("mask_tiles" if args.steps is None else "mask_tiles-try")
    found = {name: measure(trained(name, runs, args.steps), size) for name in SYSTEMS}
    for name, row in found.items():
        print(name, row)
    if args.steps is None:
        write_whole(RESULTS / "mask_tiles.json", {"size": list(size), "systems": found, "machine": machine()})


def trained(name: str, runs: Path, steps: int | None) -> TrainedMasks:
    """Of the run that is kept, or was begun, or is made now."""
    run = RunFolder(runs / name.replace(":", "-"))
    if run.config.exists():
        resume(run.path)
    else:
        length = "train.minutes=2" if steps is None else f"train.steps={steps}"
        train(NUCLEI, system=name, preset="masks", settings=[*SETTINGS, length], out=run.path)
    return masks_run(run, device="cpu")


def measure(model: TrainedMasks, size: tuple[int, int]) -> dict:
    image = mosaic(model, size)
    plan = plan_for(model.model, tuple(model.data["image_size"]))
    memory = Memory()
    memory.start()
    begin = time.monotonic()
    mask = model.segment_pixels(image)
    seconds = time.monotonic() - begin
    memory.ended.set()
    memory.join()
    part = image[: PART[0], : PART[1]]
    changed, near = tiled_twice(part, plan, model.segment_pixels)
    return {
        "megabytes": round(memory.peak(begin, begin + seconds)),
        "seconds": round(seconds, 1),
        "pixels_per_second": round(mask.size / seconds),
        "share_near_seams": float(near_seams(size, plan).mean()),
        "changed_near_seams": float(changed[near].mean()),
        "changed_inside": float(changed[~near].mean()),
        "foreground": float((mask > 0).mean()),
    }


def tiled_twice(
    part: np.ndarray, plan: Plan, segment: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Which pixels change their class if tiles begin half a tile later, and which are near a seam of either tiling."""
    begin_at = plan.tile // 2 // STRIDE * STRIDE
    later = part[begin_at:, begin_at:]
    changed = segment(part)[begin_at:, begin_at:] != segment(later)
    near = near_seams(part.shape[:2], plan)[begin_at:, begin_at:] | near_seams(later.shape[:2], plan)
    # The halo of exact tiles is all that a pixel sees; attention sees the windows that touch the new border.
    margin = plan.tile + 2 * plan.halo if plan.blend else plan.halo
    return changed[margin:, margin:], near[margin:, margin:]


def mosaic(model: TrainedMasks, size: tuple[int, int]) -> np.ndarray:
    """Test images side by side, repeated as often as needed."""
    prepared = prepare_masks(model.config.data, saved=model.data)
    tiles = prepared.store.images[prepared.split.test].numpy().transpose(0, 2, 3, 1)
    side = tiles.shape[1]
    down, across = (-(-length // side) for length in size)
    order = np.arange(down * across) % len(tiles)
    rows = [np.concatenate(list(tiles[order[row * across : (row + 1) * across]]), axis=1) for row in range(down)]
    return np.ascontiguousarray(np.concatenate(rows)[: size[0], : size[1]])


def near_seams(size: tuple[int, int], plan: Plan) -> np.ndarray:
    """Pixels within the strip that tiles share, or where they only touch, within eight pixels."""
    strip = plan.blend or 8
    near = []
    for length in size:
        place = np.arange(length) + 0.5
        seam = np.round(place / plan.tile).clip(1, max(1, (length - 1) // plan.tile)) * plan.tile
        near.append((np.abs(place - seam) < strip) & (seam < length))
    return near[0][:, None] | near[1]


if __name__ == "__main__":
    told(main)
