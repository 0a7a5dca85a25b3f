"""Rows of tokens of different lengths in one tensor, so that a batch is a single look-up.

    padded_bn = flat[first_b + n]  if n < length_b,  else pad

Shape letters: B batch, N tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError

Tokens = Sequence[Sequence[int]]


class Marks(Protocol):
    """The special tokens of sequences: a Tokeniser, for one."""

    @property
    def pad(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class TokenRows:
    """before + tokens + after of every row; the tokens are cut where all would be longer than `max_length`."""

    def __init__(
        self,
        rows: Tokens,
        *,
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        max_length: int | None = None,
    ) -> None:
        room = None if max_length is None else room_within(max_length, len(before) + len(after))
        length_of = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        self.is_cut = np.zeros(len(rows), bool) if room is None else length_of > room
        whole = (chain(before, row[:room], after) for row in rows)
        length_of = (length_of if room is None else length_of.clip(max=room)) + len(before) + len(after)
        flat = np.fromiter(chain.from_iterable(whole), np.int32, int(length_of.sum()))
        self.flat, self.length = torch.from_numpy(flat), torch.from_numpy(length_of)
        self.first = self.length.cumsum(0) - self.length

    def __len__(self) -> int:
        return len(self.length)

    def padded(self, rows: Tensor, pad: int) -> Tensor:
        """(B, N) int64 with padding at the end; N is the longest of these rows."""
        length_B = self.length[rows]
        place_N = torch.arange(int(length_B.max()))
        is_inside_BN = place_N < length_B[:, None]
        if pad < 0 and not bool(is_inside_BN.all()):
            raise MiradaError(
                "these tokens have no padding, which rows of different lengths need; choose batches of one."
            )
        index_BN = (self.first[rows][:, None] + place_N).clamp(max=len(self.flat) - 1)
        return torch.where(is_inside_BN, self.flat[index_BN].long(), pad)


def room_within(max_length: int, num_special: int) -> int:
    """How many tokens there may be beside the special ones."""
    if max_length <= num_special:
        raise MiradaError(f"max_length is {max_length}, expected more than the {num_special} special tokens of a row.")
    return max_length - num_special


def row_numbers(rows: Sequence[int] | np.ndarray | None, count: int) -> Tensor:
    """The given numbers of the rows in their table, or 0, 1, 2…"""
    return torch.arange(count) if rows is None else torch.as_tensor(np.asarray(rows, dtype=np.int64))
