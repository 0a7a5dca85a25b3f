"""Images and masks in memory at one size: whole ones resized, or large ones cut into tiles.

Shape letters: N rows, C channels, H height, W width.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from PIL import Image

from mirada.data.masks.classes import IGNORED
from mirada.data.masks.table import MaskTable
from mirada.data.memory import MemoryImages
from mirada.data.resize import fit_image, match_channels, padded_box
from mirada.data.sizing import ImageShape
from mirada.data.table import ImageTable
from mirada.errors import MiradaError

MaskFit = Literal["squash", "pad", "tile"]
Sample = tuple[np.ndarray, np.ndarray]  # image (H, W, C), mask (H, W), both uint8
OVERLAP = 0.25  # of neighbouring tiles


@dataclass(frozen=True, eq=False)
class MaskImages(MemoryImages):
    """Row i of `images` and `masks` is row i of `table`, whose targets say which classes are in it."""

    masks: torch.Tensor = field(kw_only=True)  # uint8 (N, H, W), IGNORED where it counts for nothing

    def hashes(self) -> list[bytes | None]:
        """None of images of one colour only: blank tiles do not make two images the same."""
        is_blank_N = (self.images == self.images[:, :, :1, :1]).flatten(1).all(1).tolist()
        return [None if is_blank else found for found, is_blank in zip(super().hashes(), is_blank_N, strict=True)]

    def checksum(self) -> str:
        """Of names and masks."""
        return hashlib.sha256(self.table.checksum().encode() + self.masks.numpy().tobytes()).hexdigest()

    def pixel_counts(self, rows: np.ndarray) -> np.ndarray:
        """Of each class in these masks."""
        counts = torch.bincount(self.masks[torch.from_numpy(rows)].flatten(), minlength=IGNORED + 1)
        return counts[: len(self.table.class_names)].numpy()


def load_masks(
    table: MaskTable,
    shape: ImageShape,
    *,
    fit: MaskFit,
    workers: int | None = None,
    memory_limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MaskImages:
    """Read everything; of tiles those on which nothing is known are left out, and tiles of one image are one group."""
    per_image = [len(_corners(tuple(size), shape.size)) if fit == "tile" else 1 for size in table.sizes_N2.tolist()]
    needed = sum(per_image) * (shape.channels + 1) * shape.size[0] * shape.size[1]
    if memory_limit is not None and needed > memory_limit:
        raise MiradaError(
            f"{table.source}: images and masks need {needed / 2**30:.1f} GB at {shape.size[1]} x {shape.size[0]}; "
            "lower data.image_size, or raise data.memory_gb if there is so much memory."
        )
    images, masks, names, groups = [], [], [], []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for row, samples in enumerate(pool.map(lambda row: _samples(table, row, shape, fit), range(len(table)))):
            for (image, mask), place in samples:
                if (mask != IGNORED).any():
                    images.append(image.transpose(2, 0, 1))
                    masks.append(mask)
                    names.append(table.name(row) + place)
                    groups.append(row)
            if progress is not None:
                progress(row + 1, len(table))
    notes = _vanished_notes(table, shape.size, num_left=len(set(groups)))
    stacked = np.stack(masks)
    presence_NC = np.stack([(stacked == number).any((1, 2)) for number in range(len(table.classes.names))], axis=1)
    split_names = None if table.splits is None else table.splits[groups]
    return MaskImages(
        ImageTable(
            source=table.source,
            kind=table.kind,
            task="multi-label",
            targets=presence_NC.astype(np.float32),
            class_names=table.classes.names,
            paths=tuple(names),
            splits=split_names,
            groups=np.array(groups, dtype=np.int64),
            notes=(*table.notes, *notes),
        ),
        shape,
        torch.from_numpy(np.stack(images)),
        masks=torch.from_numpy(stacked),
    )


def _vanished_notes(table: MaskTable, size: tuple[int, int], num_left: int) -> tuple[str, ...]:
    """Sparse labels may fall between the pixels of a mask that is shrunk."""
    at, instead = f"at {size[1]} x {size[0]}", "data.fit=tile or a larger data.image_size keeps them"
    if not num_left:
        raise MiradaError(f"{table.source}: of no mask a pixel that counts is left {at}; {instead}.")
    vanished = len(table) - num_left
    note = f"{vanished:,} images are not used: of their masks no pixel that counts is left {at}; {instead}."
    return (note,) if vanished else ()


def _samples(table: MaskTable, row: int, shape: ImageShape, fit: MaskFit) -> list[tuple[Sample, str]]:
    image, mask = match_channels(table.read_image(row), shape.channels), table.read_mask(row)
    if fit != "tile":
        return [((fit_image(image, shape.size, fit), fit_mask(mask, shape.size, fit)), "")]
    found = []
    for top, left in _corners(mask.shape, shape.size):
        window = slice(top, top + shape.size[0]), slice(left, left + shape.size[1])
        found.append((_filled(image[window], mask[window], shape.size), f" ({top}, {left})"))
    return found


def fit_mask(mask_HW: np.ndarray, size: tuple[int, int], fit: Literal["squash", "pad"]) -> np.ndarray:
    """As fit_image, but with the nearest number; what is around a padded image counts for nothing."""
    if fit == "squash":
        return _nearest(mask_HW, size)
    padded = np.full(size, IGNORED, dtype=np.uint8)
    height, width = mask_HW.shape
    inside, inner = padded_box((height, width), size)
    padded[inside] = _nearest(mask_HW, inner)
    return padded


def _nearest(mask_HW: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return np.asarray(Image.fromarray(mask_HW).resize((size[1], size[0]), Image.Resampling.NEAREST))


def _corners(size: tuple[int, ...], tile: tuple[int, int]) -> list[tuple[int, int]]:
    """Top and left of tiles that overlap by a quarter and together cover the image; the last ones end with it."""
    starts = []
    for side, length in zip(size, tile, strict=True):
        step = max(1, round(length * (1 - OVERLAP)))
        starts.append([*range(0, max(side - length, 0), step), max(side - length, 0)])
    return [(top, left) for top in starts[0] for left in starts[1]]


def _filled(image: np.ndarray, mask: np.ndarray, size: tuple[int, int]) -> Sample:
    """A tile that is smaller than the others is filled up with what counts for nothing."""
    below, right = size[0] - mask.shape[0], size[1] - mask.shape[1]
    if not below and not right:
        return image, mask
    around = ((0, below), (0, right))
    return np.pad(image, (*around, (0, 0))), np.pad(mask, around, constant_values=IGNORED)
