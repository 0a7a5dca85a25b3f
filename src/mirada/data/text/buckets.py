"""Rows of similar length in the same batch, so that little of it is padding."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mirada.data.order import epoch_order

POOL = 64  # batches of random rows among which rows are sorted by length


def token_bounds(longest: np.ndarray, tokens: int) -> np.ndarray:
    """Where batches begin and end, in rows that are sorted by length, shortest first: as many rows as
    rows · longest ≤ tokens allows, but at least one. They depend on the lengths alone.
    """
    bounds = [0]
    while bounds[-1] < len(longest):
        first = bounds[-1]
        limit = max(1, int(tokens // longest[first]))
        ahead = longest[first : first + limit]
        size = np.searchsorted(np.arange(1, len(ahead) + 1) * ahead, tokens, side="right")
        bounds.append(min(len(longest), first + max(1, int(size))))
    return np.array(bounds)


def shuffled_within(key: Tensor, seed: int, epoch: int) -> Tensor:
    """The order that sorts by `key`; rows with the same key are in random order, another one every epoch."""
    shuffle = epoch_order(len(key), seed, epoch)
    return shuffle[key[shuffle].argsort(stable=True)]


def pooled_order(
    length: Tensor, batch_size: int, seed: int, epoch: int, weights: Tensor | None = None, pool: int = POOL
) -> Tensor:
    """(steps, batch_size) rows: a random order, sorted by length within each pool, the batches in random order.

    What does not fill a last batch is left out (of this epoch's order), unless it would be the only one.
    """
    order = epoch_order(len(length), seed, epoch, weights)
    steps = len(order) // batch_size
    if steps == 0:
        return order[None]
    order = order[: steps * batch_size]
    pool_of = torch.arange(len(order)) // (pool * batch_size)
    by_length = length[order].argsort(stable=True)
    order = order[by_length[pool_of[by_length].argsort(stable=True)]]
    return order.view(steps, batch_size)[epoch_order(steps, seed, epoch)]
