"""What all batches of text share: a position, and the walk from there to the end of the epoch.

Batch b of epoch e is a pure function of (seed, e, b), so a resumed run continues with exactly the batches that an
uninterrupted one would have seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from mirada.data.batches import Batch
from mirada.errors import MiradaError

EVALUATION_EPOCH = 2**32 - 1  # what is random in an evaluation is drawn for an epoch that no training reaches


class NumberedBatches(ABC):
    """Iterating yields what is left of the current epoch and then moves to the next."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.epoch, self.step = 0, 0

    @abstractmethod
    def __len__(self) -> int:
        """Steps per epoch, the same in all epochs."""

    @abstractmethod
    def batch(self, epoch: int, step: int) -> Batch:
        """Any batch, without moving."""

    def __iter__(self) -> Iterator[Batch]:
        epoch = self.epoch
        while self.step < len(self):
            self.step += 1
            yield self.batch(epoch, self.step - 1)
        self.epoch, self.step = epoch + 1, 0


def require_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise MiradaError(f"{name} is {size}, expected at least 1.")
