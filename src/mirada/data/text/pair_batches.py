"""Pairs of sentences: inputs are tokens + [end], targets [start] + tokens + [end].

    rows · max(longest source, longest target) ≤ tokens_per_batch

Rows are sorted by length, and cut into batches where this would not hold any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.order import epoch_order
from mirada.data.text.buckets import shuffled_within, token_bounds
from mirada.data.text.numbered_batches import NumberedBatches, require_positive
from mirada.data.text.token_rows import Marks, TokenRows, Tokens, room_within, row_numbers
from mirada.errors import MiradaError


class PairBatches(NumberedBatches):
    """Every pair once per epoch; pairs of the same lengths meet in other batches every epoch.

    Pairs with a side that is longer than `max_length`, special tokens counted, are left out (`num_left_out`).
    A pair that is longer than `tokens_per_batch` is a batch of its own. rows: of the pairs in their table.
    """

    def __init__(
        self,
        source: Tokens,
        target: Tokens,
        marks: Marks,
        *,
        tokens_per_batch: int,
        max_length: int | None = None,
        seed: int = 0,
        rows: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        super().__init__(seed)
        require_same_count(source, target)
        kept = [n for n in range(len(source)) if max_length is None or _fits(source[n], target[n], max_length)]
        self.num_left_out = len(source) - len(kept)
        if not kept:
            raise MiradaError(
                f"0 of {len(source)} pairs are within max_length ({max_length} tokens), expected at least 1; give "
                "more pairs or a greater max_length."
            )
        self.pairs = Pairs([source[n] for n in kept], [target[n] for n in kept], marks)
        self.rows = row_numbers(rows, len(source))[kept]
        self.bounds = self.pairs.bounds(tokens_per_batch)
        self._order: tuple[int, Tensor, Tensor] = (-1, torch.empty(0), torch.empty(0))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def batch(self, epoch: int, step: int) -> Batch:
        if self._order[0] != epoch:
            by_length = shuffled_within(self.pairs.key, self.seed, epoch)
            self._order = (epoch, by_length, epoch_order(len(self), self.seed, epoch))
        _, by_length, batch_order = self._order
        number = int(batch_order[step])
        chosen = by_length[self.bounds[number] : self.bounds[number + 1]]
        return self.pairs.batch(chosen, self.rows)

    @property
    def padding(self) -> float:
        """The share of padding among all tokens of an epoch, source and target."""
        return self.pairs.padding(self.bounds)


def pair_evaluation(
    source: Tokens,
    target: Tokens,
    marks: Marks,
    *,
    tokens_per_batch: int,
    max_length: int | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
) -> Iterator[Batch]:
    """Every pair once, shortest first; those beyond `max_length` are cut to it, the end token stays, for a score of a
    set is one of all its sentences."""
    require_same_count(source, target)
    if len(source) == 0:
        return
    pairs, numbers = Pairs(source, target, marks, max_length), row_numbers(rows, len(source))
    order, bounds = pairs.key.argsort(stable=True), pairs.bounds(tokens_per_batch)
    for first, last in pairwise(bounds):
        yield pairs.batch(order[first:last], numbers)


class Pairs:
    """Two sides with their special tokens. key: sorts by the longer side, then by source and target."""

    def __init__(self, source: Tokens, target: Tokens, marks: Marks, max_length: int | None = None) -> None:
        self.pad = marks.pad
        self.source = TokenRows(source, after=[marks.end], max_length=max_length)
        self.target = TokenRows(target, before=[marks.start], after=[marks.end], max_length=max_length)
        self.longer = torch.maximum(self.source.length, self.target.length)
        radix = 1 + int(self.longer.max())
        self.key = (self.longer * radix + self.source.length) * radix + self.target.length

    def bounds(self, tokens_per_batch: int) -> np.ndarray:
        require_positive(tokens_per_batch=tokens_per_batch)
        return token_bounds(np.sort(self.longer.numpy()), tokens_per_batch)

    def batch(self, chosen: Tensor, rows: Tensor) -> Batch:
        return Batch(self.source.padded(chosen, self.pad), self.target.padded(chosen, self.pad), rows[chosen])

    def padding(self, bounds: np.ndarray) -> float:
        order, size, whole, real = self.key.argsort(), np.diff(bounds), 0, 0
        for side in (self.source, self.target):
            length = side.length[order].numpy()
            whole += int((np.maximum.reduceat(length, bounds[:-1]) * size).sum())
            real += int(length.sum())
        return 1 - real / whole


def require_same_count(source: Tokens, target: Tokens) -> None:
    if len(source) != len(target):
        raise MiradaError(f"there are {len(source)} source and {len(target)} target sentences; expected pairs.")


def _fits(source: Sequence[int], target: Sequence[int], max_length: int) -> bool:
    return len(source) <= room_within(max_length, 1) and len(target) <= room_within(max_length, 2)
