"""Images decoded on the way, by worker processes: for sets that do not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from mirada.data.fingerprint import file_hash, pixel_hash
from mirada.data.memory import MemoryImages, OnBroken, load_images, read_or_reason
from mirada.data.normalise import Normalisation, normalisation_of
from mirada.data.resize import Fit
from mirada.data.sizing import ImageShape, bytes_in_memory, infer_shape
from mirada.data.table import BrokenImage, ImageTable
from mirada.errors import MiradaError

MEMORY_LIMIT = 2 << 30  # bytes: leaves room for the model and the browser on an 8 GB laptop
STATISTICS_SAMPLE = 2000
AHEAD = 4  # batches for each worker to read in advance: small images are asked for several batches at a time


def open_images(
    table: ImageTable,
    shape: ImageShape | None = None,
    *,
    fit: Fit = "crop",
    workers: int | None = None,
    on_broken: OnBroken = "skip",
    progress=None,
    memory_limit: int = MEMORY_LIMIT,
) -> MemoryImages | StreamedImages:
    """In memory if the set fits in `memory_limit` bytes at this shape, else streamed; both have the same methods."""
    shape = shape or infer_shape(table)
    if bytes_in_memory(len(table), shape) <= memory_limit:
        return load_images(table, shape, fit=fit, workers=workers, on_broken=on_broken, progress=progress)
    return StreamedImages(table, shape, fit=fit, workers=workers, on_broken=on_broken)


class StreamedImages:
    """Like MemoryImages, but a broken image is only found on the way: it is left out of its batch and listed."""

    def __init__(
        self,
        table: ImageTable,
        shape: ImageShape,
        *,
        fit: Fit = "crop",
        workers: int | None = None,
        on_broken: OnBroken = "skip",
    ):
        self.table, self.shape, self.on_broken = table, shape, on_broken
        self._reasons: dict[int, str] = {}
        self._files = _ImageFiles(table, shape, fit)
        self._workers = min(4, os.cpu_count() or 1) if workers is None else workers
        self._resting: list[DataLoader] = []  # their workers stay alive

    def __len__(self) -> int:
        return len(self.table)

    @property
    def broken(self) -> tuple[BrokenImage, ...]:
        """Those met so far."""
        return tuple(BrokenImage(self.table.name(row), self._reasons[row]) for row in sorted(self._reasons))

    def fetch(self, row_batches: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(uint8 images, rows) for each batch of rows, in order; rows of broken images are missing from both."""
        # An evaluation comes in the middle of an epoch: each has its own loader, as a loader makes one pass at a time.
        loader = self._resting.pop() if self._resting else self._new_loader()
        assert isinstance(loader.batch_sampler, _RowBatches)
        loader.batch_sampler.batches = [rows.tolist() for rows in row_batches]
        try:
            for images, rows, reasons in loader:
                self._reasons.update(reasons)
                if reasons and self.on_broken == "error":
                    raise MiradaError(next(iter(reasons.values())))
                yield images, rows
        finally:
            self._resting.append(loader)

    def _new_loader(self) -> DataLoader:
        return DataLoader(
            self._files,
            batch_sampler=_RowBatches(),
            num_workers=self._workers,
            collate_fn=_stack,
            persistent_workers=self._workers > 0,
            prefetch_factor=AHEAD if self._workers else None,
        )

    def normalisation(self, rows: np.ndarray) -> Normalisation:
        """Statistics of up to 2,000 evenly spaced (training) rows: the error is far below what training notices."""
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(STATISTICS_SAMPLE, len(rows))).astype(int))]
        return normalisation_of(images for images, _ in self.fetch(torch.from_numpy(chosen).split(64)))

    def hashes(self) -> list[bytes | None]:
        """For make_split: of the file bytes, since decoding everything just for this would cost an epoch."""
        if self.table.paths is None:
            return [pixel_hash(self.table.read(row)) for row in range(len(self))]
        return [_file_hash_or_none(path) for path in self.table.paths]


class _ImageFiles(Dataset):
    def __init__(self, table: ImageTable, shape: ImageShape, fit: Fit):
        self.table, self.shape, self.fit = table, shape, fit

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, row: int) -> tuple[int, np.ndarray | str]:
        return row, read_or_reason(self.table, row, self.shape, self.fit)


class _RowBatches:
    """A batch sampler whose batches are set before each pass, so that workers stay alive between passes."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


def _stack(items: list[tuple[int, np.ndarray | str]]) -> tuple[torch.Tensor, torch.Tensor, dict[int, str]]:
    good = [(row, image) for row, image in items if not isinstance(image, str)]
    reasons = {row: image for row, image in items if isinstance(image, str)}
    if not good:
        return torch.empty(0, 0, 0, 0, dtype=torch.uint8), torch.empty(0, dtype=torch.int64), reasons
    images = torch.from_numpy(np.stack([image for _, image in good]))
    return images, torch.tensor([row for row, _ in good]), reasons


def _file_hash_or_none(path: str) -> bytes | None:
    try:
        return file_hash(path)
    except (OSError, ValueError):  # no file, or no such row in it
        return None
