"""Batches for training and evaluation, from images in memory or streamed.

Batch b of epoch e is a pure function of (seed, e, b) and of the sizes of batches and images: the saved position is
three numbers, and a resumed run continues with exactly the batches that an uninterrupted one would have seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from mirada.data.memory import MemoryImages
from mirada.data.normalise import Normalisation
from mirada.data.order import balanced_weights, epoch_order, step_generator
from mirada.data.recipe import STRENGTHS, Augmentation, Sample, augment_images, mix_batches
from mirada.data.stream import StreamedImages
from mirada.errors import MiradaError

# Batches of small images are augmented several at a time: up to so many values (a few megabytes), calling an operation
# takes as long as the operation itself.
VALUES_AT_ONCE = 2**20
Fetched = tuple[torch.Tensor, torch.Tensor]  # uint8 images, and the rows that they are


@dataclass(frozen=True, eq=False)
class Batch:
    """inputs: images, normalised float32 (B, C, H, W); of a graph, the numbers of nodes; of text, of tokens (B, N).
    targets: as in the table, or shares (B, classes) if they were mixed; of text, the numbers of tokens.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    rows: torch.Tensor  # rows of the table
    weight: float = 1.0  # of its loss, where it is a share of a batch (mirada.data.share)


class Batches(Protocol):
    """Endless in principle, with a position: what a training loop needs of them."""

    epoch: int
    step: int

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def batch(self, epoch: int, step: int) -> Batch: ...


class TrainBatches:
    """Shuffled, augmented batches. Iterating yields what is left of the current epoch and then moves to the next."""

    def __init__(
        self,
        store: MemoryImages | StreamedImages,
        rows: np.ndarray,
        *,
        batch_size: int,
        normalisation: Normalisation,
        augmentation: Augmentation = STRENGTHS["none"],
        seed: int = 0,
        balanced: bool = False,
    ):
        if batch_size < 1:
            raise MiradaError(f"batch_size is {batch_size}, expected at least 1.")
        if len(rows) == 0:
            raise MiradaError(f"{store.table.source}: there are no training images.")
        self.store, self.batch_size, self.seed = store, batch_size, seed
        self.normalisation, self.augmentation = normalisation, augmentation
        self.rows = torch.from_numpy(np.asarray(rows, dtype=np.int64))
        self.targets = torch.from_numpy(store.table.targets)
        self.weights = balanced_weights(self.targets[self.rows]) if balanced else None
        self.epoch, self.step = 0, 0
        values = batch_size * store.shape.channels * store.shape.size[0] * store.shape.size[1]
        self.group = max(1, VALUES_AT_ONCE // values)  # batches that are augmented together
        self._order: tuple[int, torch.Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        """Steps per epoch. An incomplete last batch is left out (of this epoch's order), unless it is the only one."""
        return max(1, len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        epoch, first = self.epoch, self._first_of_group(self.step)
        fetched = iter(self.store.fetch([self._rows_at(epoch, step) for step in range(first, len(self))]))
        for start in range(first, len(self), self.group):
            for step, batch in self._finish(itertools.islice(fetched, self.group), epoch, start):
                if step >= self.step:
                    self.step = step + 1
                    yield batch
        self.epoch, self.step = epoch + 1, 0

    def batch(self, epoch: int, step: int) -> Batch:
        """Any batch, without moving."""
        start = self._first_of_group(step)
        wanted = [self._rows_at(epoch, each) for each in range(start, min(start + self.group, len(self)))]
        found = dict(self._finish(self.store.fetch(wanted), epoch, start))
        if step not in found:
            raise MiradaError(f"{self.store.table.source}: no image of batch {step} can be read; see `mirada check`.")
        return found[step]

    def state_dict(self) -> dict[str, int]:
        """The position: `step` batches of `epoch` have been handed out."""
        return {"epoch": self.epoch, "step": self.step, **self._identity()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue at a saved position; the order must be the one it was saved for."""
        for key, value in self._identity().items():
            if state.get(key) != value:
                raise MiradaError(
                    f"the saved position has {key} {state.get(key)} but this run has {value}; keep it the same."
                )
        self.epoch, self.step = state["epoch"], state["step"]

    def _identity(self) -> dict[str, int]:
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "num_images": len(self.rows),
            "balanced": int(self.weights is not None),
        }

    def _rows_at(self, epoch: int, step: int) -> torch.Tensor:
        if self._order[0] != epoch:
            self._order = (epoch, epoch_order(len(self.rows), self.seed, epoch, self.weights))
        return self.rows[self._order[1][step * self.batch_size : (step + 1) * self.batch_size]]

    def _first_of_group(self, step: int) -> int:
        return step // self.group * self.group

    def _finish(self, fetched: Iterable[Fetched], epoch: int, start: int) -> Iterator[tuple[int, Batch]]:
        """The batches of a group, which begins at step `start`, and their steps."""
        # All images of a streamed batch may be broken.
        found = [(step, *each) for step, each in enumerate(fetched, start) if len(each[1])]
        if not found:
            return
        steps, images, rows = zip(*found, strict=True)
        generator = step_generator(self.seed, epoch, start)
        inputs, targets = self._augmented(torch.cat(images), torch.cat(rows), generator)
        sizes = [len(each) for each in rows]
        parts = self._mixed(list(zip(inputs.split(sizes), targets.split(sizes), strict=True)), generator)
        for step, part, of_rows in zip(steps, parts, rows, strict=True):
            yield step, Batch(*part, of_rows)

    def _augmented(self, images: torch.Tensor, rows: torch.Tensor, generator: torch.Generator) -> Sample:
        """Inputs and targets of these rows."""
        return augment_images(images, generator, self.augmentation, self.normalisation), self.targets[rows]

    def _mixed(self, batches: list[Sample], generator: torch.Generator) -> list[Sample]:
        return mix_batches(batches, generator, self.augmentation, self.store.table.num_outputs)


def evaluation_batches(
    store: MemoryImages | StreamedImages,
    rows: Sequence[int] | np.ndarray,
    *,
    batch_size: int,
    normalisation: Normalisation,
) -> Iterator[Batch]:
    """All rows once, in order, without augmentation."""
    targets = torch.from_numpy(store.table.targets)
    wanted = torch.from_numpy(np.asarray(rows, dtype=np.int64))
    for images, found in store.fetch(wanted.split(batch_size) if len(wanted) else ()):
        if len(found):
            yield Batch(normalisation.apply(images), targets[found], found)
