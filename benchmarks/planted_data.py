"""Images with planted objects, and exactly where they are: the data of benchmarks/planted.py.

An image of 56 × 56 has one or two objects, ellipses or rectangles, each painted with the texture of its class in two
colours of its own; one or two flat blobs of the same shapes that belong to no class; and a noisy slope of colour behind
them. Colour and shape say nothing about the class, and what belongs to a class is known to the pixel.

Shape letters: N images, C classes, H and W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIDE = 56
CLASSES = ("horizontal", "diagonal", "vertical", "antidiagonal", "checker", "wide")
SECOND_OBJECT = 0.72  # of images: there a map that is the same for every class must fail for one of the two
HALF_SIDES = (7.0, 12.0)
PERIOD, WIDE_PERIOD, SQUARE = 4.0, 9.0, 3.0  # pixels
NOISE = 0.03
CHUNK = 100  # images painted at once
CANDIDATES = 16  # places tried for the second object
SPLITS = {"train": 16_000, "val": 1_000, "test": 1_000}
ROW_H1, COLUMN_1W = (axis.astype(np.float32) for axis in np.ogrid[:SIDE, :SIDE])


@dataclass(frozen=True)
class Planted:
    """uint8 images, 0 or 1 for each class, and for each pixel the number of its class plus one, or 0."""

    images_NHWC: np.ndarray
    labels_NC: np.ndarray
    classes_NHW: np.ndarray

    def mask(self, image_P: np.ndarray, class_P: np.ndarray) -> np.ndarray:
        """(P, H, W) where the object of this class is, for each pair of an image and a class."""
        return self.classes_NHW[image_P] == (class_P + 1)[:, None, None]


def planted(count: int, seed: int) -> Planted:
    """The same images for the same seed; the first ones are the same for any count."""
    sizes = [min(CHUNK, count - start) for start in range(0, count, CHUNK)]
    parts = [_paint(size, np.random.default_rng([seed, number])) for number, size in enumerate(sizes)]
    return Planted(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def seed_of(split: str, seed: int) -> int:
    return 3 * seed + list(SPLITS).index(split)


def write_data(path: Path, seed: int, sizes: dict[str, int]) -> None:
    """The archive that `mirada train` reads: x_train, y_train, … with several labels per image."""
    arrays: dict[str, np.ndarray] = {"class_names": np.array(CLASSES)}
    for split, size in sizes.items():
        made = planted(size, seed_of(split, seed))
        arrays |= {f"x_{split}": made.images_NHWC, f"y_{split}": made.labels_NC}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **arrays)
    partial.replace(path)


def pairs(labels_NC: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many images and one class of each, drawn from those it has: no image twice, so pairs are independent."""
    generator = np.random.default_rng(seed)
    image_P = generator.permutation(len(labels_NC))[:count]
    return image_P, np.where(labels_NC[image_P] > 0, generator.random((len(image_P), labels_NC.shape[1])), -1).argmax(1)


def _paint(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A chunk is always painted whole, so that fewer images are the first of more."""
    pixels = _background(generator)
    num_blobs = generator.integers(1, 3, CHUNK)
    for number in range(2):
        half = generator.uniform(*HALF_SIDES, (CHUNK, 2))
        inside = _shape(generator, generator.uniform(0, SIDE, (CHUNK, 2)), half)
        colour = generator.random((CHUNK, 1, 1, 3), dtype=np.float32)
        _put(pixels, inside & (num_blobs > number)[:, None, None], colour)
    first = generator.integers(0, len(CLASSES), CHUNK)
    second = (first + generator.integers(1, len(CLASSES), CHUNK)) % len(CLASSES)
    has_second = generator.random(CHUNK) < SECOND_OBJECT
    classes_NHW = np.zeros((CHUNK, SIDE, SIDE), np.uint8)
    labels_NC = np.zeros((CHUNK, len(CLASSES)), np.uint8)
    centre, reach = None, np.zeros(CHUNK)
    for class_N, is_there in ((first, np.ones(CHUNK, bool)), (second, has_second)):
        half = generator.uniform(*HALF_SIDES, (CHUNK, 2))
        centre = _place(generator, half, centre, reach)
        reach = half.max(1)
        inside = _shape(generator, centre, half) & is_there[:, None, None]
        _put(pixels, inside, _texture(generator, class_N))
        classes_NHW[inside] = np.broadcast_to(class_N[:, None, None] + 1, inside.shape)[inside]
        labels_NC[np.arange(CHUNK)[is_there], class_N[is_there]] = 1
    pixels += generator.standard_normal(pixels.shape, dtype=np.float32) * NOISE
    images_NHWC = np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)
    return images_NHWC[:count], labels_NC[:count], classes_NHW[:count]


def _background(generator: np.random.Generator) -> np.ndarray:
    """A slope from one colour to another, in any direction."""
    angle = generator.uniform(0, 2 * np.pi, (CHUNK, 1, 1)).astype(np.float32)
    along = np.cos(angle) * (ROW_H1 / SIDE - 0.5) + np.sin(angle) * (COLUMN_1W / SIDE - 0.5)
    share = (along + 0.5).clip(0, 1)[..., None]
    one, other = generator.random((2, CHUNK, 1, 1, 3), dtype=np.float32)
    return one + share * (other - one)


def _shape(generator: np.random.Generator, centre: np.ndarray, half: np.ndarray) -> np.ndarray:
    """(N, H, W) inside an ellipse or a rectangle."""
    centre, half = centre.astype(np.float32)[..., None, None], half.astype(np.float32)[..., None, None]
    down = np.abs(ROW_H1 + 0.5 - centre[:, 0]) / half[:, 0]
    across = np.abs(COLUMN_1W + 0.5 - centre[:, 1]) / half[:, 1]
    is_ellipse = generator.random((CHUNK, 1, 1)) < 0.5
    return np.where(is_ellipse, down**2 + across**2 < 1, np.maximum(down, across) < 1)


def _place(generator: np.random.Generator, half: np.ndarray, other: np.ndarray | None, reach: np.ndarray) -> np.ndarray:
    """A centre with all of the object in the image: the first of some that is clear of the other, or the farthest."""
    tried = half[:, None] + generator.random((CHUNK, CANDIDATES, 2)) * (SIDE - 2 * half[:, None])
    if other is None:
        return tried[:, 0]
    apart = np.linalg.norm(tried - other[:, None], axis=-1)
    clear = apart >= (half.max(1) + reach)[:, None]
    chosen = np.where(clear.any(1), clear.argmax(1), apart.argmax(1))
    return tried[np.arange(CHUNK), chosen]


def _texture(generator: np.random.Generator, class_N: np.ndarray) -> np.ndarray:
    """(N, H, W, 3) of two colours that differ in every channel, with a phase of its own."""
    one = generator.random((CHUNK, 1, 1, 3), dtype=np.float32)
    other = (one + generator.uniform(0.35, 0.65, one.shape).astype(np.float32)) % 1
    phase = generator.random((CHUNK, 2, 1, 1), dtype=np.float32)
    is_wide, is_checker = ((class_N == CLASSES.index(name))[:, None, None] for name in ("wide", "checker"))
    quarter = np.where(is_wide[:, 0, 0], generator.integers(0, 4, CHUNK), class_N)
    angle = (quarter * np.pi / 4).astype(np.float32)[:, None, None]
    along = np.cos(angle) * ROW_H1 + np.sin(angle) * COLUMN_1W
    stripe = (along / np.where(is_wide, WIDE_PERIOD, PERIOD) + phase[:, 0]) % 1 < 0.5
    squares = np.floor(ROW_H1 / SQUARE + 2 * phase[:, 0]) + np.floor(COLUMN_1W / SQUARE + 2 * phase[:, 1])
    return np.where(np.where(is_checker, squares % 2 < 1, stripe)[..., None], one, other)


def _put(pixels: np.ndarray, inside: np.ndarray, paint: np.ndarray) -> None:
    pixels[inside] = np.broadcast_to(paint, pixels.shape)[inside]
