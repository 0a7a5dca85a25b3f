"""Where tokens are: an index along the sequence and a coordinate on a line, plane or volume.

Shape letters: N tokens, A axes (1 for a line, 2 for a plane).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mirada.errors import MiradaError


@dataclass(frozen=True)
class Places:
    """The order and the coordinates of N tokens; the first `num_extra` of them (a class token, say) have no coordinate.

    Leading dimensions are allowed: blocks of tokens, or one row of positions per sample as (B, 1, N).
    """

    index_N: Tensor
    coords_NA: Tensor
    size: tuple[int, ...]
    num_extra: int = 0
    consecutive: bool = False  # the index counts up by one
    unpadded: tuple[int, ...] | None = None  # of a lattice that was padded at its ends, the size of what is real

    def __len__(self) -> int:
        return self.index_N.shape[-1]

    @property
    def is_whole(self) -> bool:
        """All tokens of the line or lattice in their order, so that a token's row is its index."""
        return self.consecutive and len(self) == self.num_extra + math.prod(self.size)

    @property
    def is_stretch(self) -> bool:
        """Tokens of a line that follow one another, and the line ends with them."""
        return self.consecutive and len(self.size) == 1 and not self.num_extra

    def is_last_of(self, others: Places) -> bool:
        """One token, with which the line of the others ends."""
        return len(self) == 1 and self.consecutive and others.is_whole and self.size == others.size == (len(others),)

    def must_be_of(self, num_tokens: int) -> None:
        if len(self) != num_tokens:
            raise MiradaError(
                f"{num_tokens} tokens were given with places for {len(self)}: give a place for each token"
            )

    def followed_by(self, more: Places) -> Places:
        """These tokens and then more of them, as a cache gathers them."""
        if more.num_extra:
            raise MiradaError(f"{more.num_extra} extra tokens after others in a cache: they come first, or not at all")
        length = len(self) + len(more)
        if self.is_whole and more.consecutive and not self.num_extra and more.size == (length,):
            return line(length, device=self.index_N.device)
        index = _joined(self.index_N, more.index_N, dim=-1)
        coords = _joined(self.coords_NA, more.coords_NA, dim=-2)
        size = tuple(max(extents) for extents in zip(self.size, more.size, strict=True))
        return Places(index, coords, size, self.num_extra)

    def of_samples(self, batch_index_B: Tensor) -> Places:
        """Those of some samples, where each sample has its own (B, 1, N)."""
        index, coords = self.index_N, self.coords_NA
        if index.ndim == 1 and coords.ndim == 2:
            return self
        if index.ndim > 1:
            index = index.index_select(0, batch_index_B)
        if coords.ndim > 2:
            coords = coords.index_select(0, batch_index_B)
        return replace(self, index_N=index, coords_NA=coords)


def offsets(queries: Places, keys: Places) -> Tensor:
    """place_j − place_i for every pair of tokens with a place: (…, N, M, A)."""
    axes = queries.coords_NA.shape[-1], keys.coords_NA.shape[-1]
    if axes[0] != axes[1]:
        raise MiradaError(
            f"queries on {axes[0]} axes cannot be compared with keys on {axes[1]}: give both their places"
        )
    return keys.coords_NA[..., None, :, :] - queries.coords_NA[..., :, None, :]


def _joined(one: Tensor, other: Tensor, dim: int) -> Tensor:
    """Concatenated along `dim`; what stands before it is broadcast."""
    lead = torch.broadcast_shapes(one.shape[:dim], other.shape[:dim])
    return torch.cat([x.expand(*lead, *x.shape[dim:]) for x in (one, other)], dim=dim)


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
