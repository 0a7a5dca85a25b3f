"""Texts with a class: inputs are [start] + tokens + [end], targets the numbers of the classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.order import balanced_weights
from mirada.data.text.buckets import pooled_order
from mirada.data.text.numbered_batches import NumberedBatches, require_positive
from mirada.data.text.token_rows import Marks, TokenRows, Tokens, row_numbers
from mirada.errors import MiradaError


class LabelledBatches(NumberedBatches):
    """Texts are cut to `max_length`, special tokens counted (`num_cut`). balanced: every class as often as another."""

    def __init__(
        self,
        texts: Tokens,
        labels: Sequence[int] | np.ndarray,
        marks: Marks,
        *,
        batch_size: int,
        max_length: int | None = None,
        seed: int = 0,
        balanced: bool = False,
        rows: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        super().__init__(seed)
        require_positive(batch_size=batch_size)
        if len(texts) == 0:
            raise MiradaError("there are 0 training texts, expected at least 1.")
        self.texts = TokenRows(texts, before=[marks.start], after=[marks.end], max_length=max_length)
        self.labels = torch.as_tensor(np.asarray(labels))
        self.rows, self.pad = row_numbers(rows, len(texts)), marks.pad
        self.num_cut = int(self.texts.is_cut.sum())
        self.batch_size = batch_size
        self.weights = balanced_weights(self.labels) if balanced else None
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        return max(1, len(self.texts) // self.batch_size)

    def batch(self, epoch: int, step: int) -> Batch:
        if self._order[0] != epoch:
            order = pooled_order(self.texts.length, self.batch_size, self.seed, epoch, self.weights)
            self._order = (epoch, order)
        chosen = self._order[1][step]
        return Batch(self.texts.padded(chosen, self.pad), self.labels[chosen], self.rows[chosen])


def labelled_evaluation(
    texts: Tokens,
    labels: Sequence[int] | np.ndarray,
    marks: Marks,
    *,
    batch_size: int,
    max_length: int | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
) -> Iterator[Batch]:
    """Every text once, shortest first, cut to `max_length`."""
    require_positive(batch_size=batch_size)
    if len(texts) == 0:
        return
    kept = TokenRows(texts, before=[marks.start], after=[marks.end], max_length=max_length)
    targets, numbers = torch.as_tensor(np.asarray(labels)), row_numbers(rows, len(texts))
    for chosen in kept.length.argsort(stable=True).split(batch_size):
        yield Batch(kept.padded(chosen, marks.pad), targets[chosen], numbers[chosen])
