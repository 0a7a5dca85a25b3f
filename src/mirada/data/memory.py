"""All images in one uint8 tensor (N, C, H, W): the fast path for sets that fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch

from mirada.data.fingerprint import row_hashes
from mirada.data.normalise import Normalisation, normalisation_of
from mirada.data.resize import Fit, fit_image, match_channels
from mirada.data.sizing import ImageShape, infer_shape
from mirada.data.table import BrokenImage, ImageTable
from mirada.errors import MiradaError

OnBroken = Literal["skip", "error"]
# If more than half cannot be read, something else is wrong, and training on the rest would hide it.
MOST_BROKEN = 0.5


@dataclass(frozen=True, eq=False)
class MemoryImages:
    """Decoded images; row i of `images` belongs to row i of `table`, from which broken images were removed."""

    table: ImageTable
    shape: ImageShape
    images: torch.Tensor  # uint8 (N, C, H, W)
    broken: tuple[BrokenImage, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

    def fetch(self, row_batches: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(uint8 images, rows) for each batch of rows."""
        for rows in row_batches:
            yield self.images.index_select(0, rows), rows

    def normalisation(self, rows: np.ndarray) -> Normalisation:
        """Exact statistics of these (training) rows."""
        return normalisation_of(images for images, _ in self.fetch(torch.from_numpy(rows).split(2048)))

    def hashes(self) -> Sequence[bytes | None]:
        """For make_split: identical images have identical hashes at any size."""
        return row_hashes(self.images.numpy())


def load_images(
    table: ImageTable,
    shape: ImageShape | None = None,
    *,
    fit: Fit = "crop",
    workers: int | None = None,
    on_broken: OnBroken = "skip",
    progress: Callable[[int, int], None] | None = None,
) -> MemoryImages:
    """Decode and resize everything, in threads (Pillow decodes outside the interpreter lock)."""
    shape = shape or infer_shape(table)
    if table.pixels is not None and table.pixels.shape[1:] == (*shape.size, shape.channels):
        return MemoryImages(table, shape, torch.from_numpy(table.pixels).permute(0, 3, 1, 2).contiguous())
    images = np.empty((len(table), shape.channels, *shape.size), dtype=np.uint8)
    reasons: dict[int, str] = {}
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        decoded = pool.map(partial(read_or_reason, table, shape=shape, fit=fit), range(len(table)))
        for row, result in enumerate(decoded):
            if isinstance(result, str):
                reasons[row] = result
                if on_broken == "error":
                    pool.shutdown(cancel_futures=True)
                    raise MiradaError(result)
            else:
                images[row] = result
            if progress is not None:
                progress(row + 1, len(table))
    if len(reasons) > MOST_BROKEN * len(table):
        first = next(iter(reasons.values()))
        raise MiradaError(f"{table.source}: {len(reasons)} of {len(table)} images cannot be used; the first: {first}")
    kept = np.array([row for row in range(len(table)) if row not in reasons], dtype=np.int64)
    broken = tuple(BrokenImage(table.name(row), reason) for row, reason in reasons.items())
    tensor = torch.from_numpy(images if not reasons else images[kept])
    return MemoryImages(table if not reasons else table.subset(kept), shape, tensor, broken)


def read_image(table: ImageTable, row: int, shape: ImageShape, fit: Fit) -> np.ndarray:
    """One image as uint8 (C, H, W) of the given shape."""
    pixels = table.read(row, shape.size)
    return fit_image(match_channels(pixels, shape.channels), shape.size, fit).transpose(2, 0, 1)


def read_or_reason(table: ImageTable, row: int, shape: ImageShape, fit: Fit) -> np.ndarray | str:
    """The image, or the sentence that says why there is none."""
    try:
        return read_image(table, row, shape, fit)
    except MiradaError as error:
        reason = str(error)
        return reason if table.name(row) in reason else f"{table.name(row)}: {reason}"
