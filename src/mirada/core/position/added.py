"""Positions that are added to the tokens before attention: x_i + pe_i.

Shape letters: B batch, N tokens, D model dim, A axes. A part gives a table (N, D) for given places; calling it adds
the table to x.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core.places import Places
from mirada.core.position.rotary import Convention
from mirada.core.remembered import remembered
from mirada.errors import MiradaError


def sinusoidal_table(
    position: Tensor, dim: int, base: float = 10_000.0, convention: Convention = "interleaved"
) -> Tensor:
    """PE(pos, 2m) = sin(pos / base^{2m/D}), PE(pos, 2m+1) = cos(pos / base^{2m/D}) (Vaswani 2017, 3.5), in float64.

    Convention "half" has all sines first and then all cosines, as tensor2tensor, Marian and Whisper do.
    """
    frequency = base ** (-torch.arange(0, dim, 2, device=position.device, dtype=torch.float64) / dim)
    angle = position.to(torch.float64)[..., None] * frequency
    if convention == "half":
        return torch.cat([angle.sin(), angle.cos()], dim=-1)[..., :dim]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :dim]


class Sinusoidal(nn.Module):
    """x_i + PE(i); on a plane each axis gets its share D/A of the channels."""

    def __init__(self, dim: int, axes: int = 1, base: float = 10_000.0, convention: Convention = "interleaved") -> None:
        super().__init__()
        if dim % (2 * axes):
            raise MiradaError(
                f"dim={dim} must be a multiple of {2 * axes}: a sine and a cosine for each of {axes} axes"
            )
        self.dim, self.axes, self.base, self.convention = dim, axes, base, convention

    def table(self, places: Places) -> Tensor:
        """One row per token; tokens without a place get zeros."""
        coords = places.coords_NA
        if self.axes == 1 and coords.shape[-1] != 1:
            coords = places.index_N[..., places.num_extra :, None] - places.num_extra
        elif coords.shape[-1] != self.axes:
            raise MiradaError(f"sinusoidal positions for {self.axes} axes met places with {coords.shape[-1]}")
        dim = self.dim // self.axes
        parts = [sinusoidal_table(coords[..., a], dim, self.base, self.convention) for a in range(self.axes)]
        return F.pad(torch.cat(parts, dim=-1), (0, 0, places.num_extra, 0))

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        # A traced model takes texts of any length: it has no rows to keep.
        if self.axes == 1 and places.is_stretch and not torch.compiler.is_compiling():
            return x_BND + self._stretch(x_BND, places)
        return x_BND + _of_tokens(self.table(places)).to(x_BND.dtype)

    def _stretch(self, x_BND: Tensor, places: Places) -> Tensor:
        """(N, D) of tokens one after the other: rows of a table that is kept, as each step of decoding needs one."""
        end = places.size[0]
        length = max(64, 1 << (end - 1).bit_length())
        kept = _first_rows(x_BND, x_BND.dtype, self.dim, self.base, self.convention, length)
        return kept[end - len(places) : end]


@remembered
def _first_rows(
    device: torch.device, dtype: torch.dtype, dim: int, base: float, convention: Convention, length: int
) -> Tensor:
    return sinusoidal_table(torch.arange(length, device=device), dim, base, convention).to(dtype)


def _of_tokens(table: Tensor) -> Tensor:
    """Where each sample has its own places they are (B, 1, N), with a 1 for the heads, which tokens do not have."""
    return table.squeeze(1) if table.ndim == 4 else table


class Learned(nn.Module):
    """x_i + P_i with a learned P, also for the extra tokens in front (ViT: (N+1) × D, normal(0, 0.02)).

    `size` is (length,) or (height, width); at another size the grid is interpolated, the extra rows are kept.
    """

    def __init__(self, size: tuple[int, ...], dim: int, num_extra: int = 0, std: float = 0.02) -> None:
        super().__init__()
        self.size, self.num_extra = tuple(size), num_extra
        self.weight = nn.Parameter(torch.empty(num_extra + math.prod(size), dim))
        nn.init.normal_(self.weight, std=std)

    def table(self, places: Places) -> Tensor:
        if places.num_extra != self.num_extra:
            raise MiradaError(
                f"positions were made for {self.num_extra} extra tokens, the places have {places.num_extra}"
            )
        if len(places.size) != len(self.size):
            raise MiradaError(f"learned positions of size {self.size} met places of size {places.size}: give that size")
        if places.is_whole and places.size == self.size:
            return self.weight
        grid, size = self.weight[self.num_extra :], self.size
        if len(size) == 1:
            if places.size[0] > size[0]:
                raise MiradaError(
                    f"{places.size[0]} tokens, but learned positions exist for {size[0]}: give fewer, or choose rotary "
                    f"or sinusoidal positions before training"
                )
            if places.is_stretch and not torch.compiler.is_compiling():
                return grid[places.size[0] - len(places) : places.size[0]]
        elif places.size != size:
            grid, size = resize_grid(grid, size, places.size), places.size
        rows = grid[_raster(places.coords_NA, size)]
        extra = self.weight[: self.num_extra].expand(*rows.shape[:-2], -1, -1)
        return torch.cat([extra, rows], dim=-2)

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        return x_BND + _of_tokens(self.table(places))


def _raster(coords_NA: Tensor, size: tuple[int, ...]) -> Tensor:
    """The row of each place in a table of the whole grid: tokens may be some of it, in any order."""
    row = coords_NA[..., 0]
    for axis in range(1, len(size)):
        row = row * size[axis] + coords_NA[..., axis]
    return row


class Appended(nn.Module):
    """[x_i ‖ pe_i]: a position as P more channels, so the width becomes D + P, where adding keeps D."""

    def __init__(self, position: Sinusoidal | Learned) -> None:
        super().__init__()
        self.position = position

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        table = _of_tokens(self.position.table(places)).to(x_BND.dtype)
        return torch.cat([x_BND, table.expand(*x_BND.shape[:-1], -1)], dim=-1)


def resize_grid(grid_ND: Tensor, size: tuple[int, ...], new_size: tuple[int, ...]) -> Tensor:
    """A grid of vectors at another size: bicubic on a plane, linear on a line, trilinear in a volume."""
    mode = {1: "linear", 2: "bicubic", 3: "trilinear"}[len(size)]
    grid = grid_ND.T.reshape(1, grid_ND.shape[-1], *size)
    grid = F.interpolate(grid, size=new_size, mode=mode, align_corners=False)
    return grid.flatten(2)[0].T
