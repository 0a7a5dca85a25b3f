"""Batches for training and evaluation, from images in memory or streamed.

Batch b of epoch e is a pure function of (seed, e, b): the saved position is three numbers, and a
resumed run continues with exactly the batches that an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from mirada.data.memory import MemoryImages
from mirada.data.normalise import Normalisation
from mirada.data.order import balanced_weights, epoch_order, step_generator
from mirada.data.recipe import STRENGTHS, Augmentation, augment_images, mix_batch
from mirada.data.stream import StreamedImages
from mirada.errors import MiradaError


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
        self._order: tuple[int, torch.Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        """Steps per epoch. An incomplete last batch is left out (of this epoch's order), unless it is the only one."""
        return max(1, len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        epoch = self.epoch
        remaining = [self._rows_at(epoch, step) for step in range(self.step, len(self))]
        for images, rows in self.store.fetch(remaining):
            step = self.step
            self.step += 1
            if len(rows):  # all images of a streamed batch may be broken
                yield self._finish(images, rows, epoch, step)
        self.epoch, self.step = epoch + 1, 0

    def batch(self, epoch: int, step: int) -> Batch:
        """Any batch, without moving."""
        images, rows = next(iter(self.store.fetch([self._rows_at(epoch, step)])))
        return self._finish(images, rows, epoch, step)

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

    def _finish(self, images: torch.Tensor, rows: torch.Tensor, epoch: int, step: int) -> Batch:
        generator = step_generator(self.seed, epoch, step)
        images = augment_images(images, generator, self.augmentation, self.normalisation)
        targets = self.targets[rows]
        images, targets = mix_batch(images, targets, generator, self.augmentation, self.store.table.num_outputs)
        return Batch(images, targets, rows)


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
