"""Where tokens are: an index along the sequence and a coordinate on a line, plane or volume.

Shape letters: N tokens, A axes (1 for a line, 2 for a plane).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Places:
    """The order and the coordinates of N tokens; the first `num_extra` of them (a class token, say) have no coordinate.

    Leading dimensions are allowed: blocks of tokens, or one row of positions per sample as (B, 1, N).
    """

    index_N: Tensor
    coords_NA: Tensor
    size: tuple[int, ...]
    num_extra: int = 0
    consecutive: bool = False  # the index counts up by one: what block kernels need to cut the sequence

    def __len__(self) -> int:
        return self.index_N.shape[-1]


def line(length: int, start: int = 0, device: torch.device | str | None = None) -> Places:
    """Tokens start, start+1, … of a sequence."""
    index_N = torch.arange(start, start + length, device=device)
    return Places(index_N, index_N[:, None], (start + length,), consecutive=True)


def plane(height: int, width: int, num_extra: int = 0, device: torch.device | str | None = None) -> Places:
    """Tokens of a height × width grid in raster order, after `num_extra` tokens that are not on the grid."""
    return lattice((height, width), num_extra, device)


def lattice(size: tuple[int, ...], num_extra: int = 0, device: torch.device | str | None = None) -> Places:
    """Tokens of a grid with any number of axes, in raster order."""
    axes = torch.meshgrid(*(torch.arange(n, device=device) for n in size), indexing="ij")
    coords_NA = torch.stack([axis.flatten() for axis in axes], dim=-1)
    index_N = torch.arange(num_extra + math.prod(size), device=device)
    return Places(index_N, coords_NA, tuple(size), num_extra, consecutive=True)
