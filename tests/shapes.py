"""Images of bright squares and discs on dark ground, with masks: small enough to be made for every test."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

TINY = (
    "system.arguments.dim=16",
    "system.arguments.depth=1",
    "system.arguments.num_heads=2",
    "system.arguments.width=4",
    "system.arguments.decoder_widths=[8,8,4,4]",
    "baseline.arguments.dim=4",
    "train.batch_size=8",
    "train.evaluations=2",
)


def shape_image(generator: np.random.Generator, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """uint8 (H, W, 3) and its classes (H, W): 0 ground, 1 square, 2 disc."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    top, left = generator.integers(0, height // 2), generator.integers(0, width // 2)
    square = (y >= top) & (y < top + height // 3) & (x >= left) & (x < left + width // 4)
    middle = generator.uniform(0.3, 0.9, 2) * size
    disc = np.hypot(y - middle[0], x - middle[1]) < min(size) / 6
    mask = np.where(disc, 2, np.where(square, 1, 0)).astype(np.uint8)
    colours = np.array([(40, 40, 40), (200, 90, 60), (60, 120, 220)])
    noise = generator.normal(0, 12, (height, width, 3))
    return (colours[mask] + noise).clip(0, 255).astype(np.uint8), mask


def make_shapes(folder: Path, num: int = 24, size: tuple[int, int] = (24, 32), seed: int = 0) -> Path:
    """folder/images/<number>.jpg and folder/masks/<number>.png, grey numbers of classes."""
    generator = np.random.default_rng(seed)
    for part in ("images", "masks"):
        (folder / part).mkdir(parents=True)
    for number in range(num):
        image, mask = shape_image(generator, size)
        Image.fromarray(image).save(folder / "images" / f"{number:02}.jpg", quality=95)
        Image.fromarray(mask).save(folder / "masks" / f"{number:02}.png")
    return folder


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-tests-")


@cache
def shapes() -> Path:
    return make_shapes(Path(_place().name) / "shapes")


@cache
def run() -> Path:
    """Trained for a moment, with a baseline and a report."""
    import mirada

    return mirada.train(shapes(), settings=[*TINY, "train.steps=12"], out=Path(_place().name) / "run").path


@cache
def tiled_run() -> Path:
    """Trained on tiles of 16 × 16 for a moment, without a baseline."""
    import mirada

    settings = [*TINY, "train.steps=4", "baseline.name=none", "data.fit=tile", "data.image_size=[16,16]"]
    return mirada.train(shapes(), settings=settings, out=Path(_place().name) / "tiled").path
