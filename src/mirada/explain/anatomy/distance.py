"""How far a head looks (Dosovitskiy 2020, fig. 7).

    d_h = mean over images and queries i of  Σ_j α_ij ‖place_i − place_j‖

Places are the centres of cells, in pixels of the image, so grids of different coarseness can be compared; in a text
they are the numbers of the tokens. Tokens that lie nowhere (a class token) are left out, as queries and as keys. What
their keys had of a row is either given to the others in proportion (rows "renormalised") or counts as no distance at
all (rows "as they are": heads that look at the class token then seem to look near).

Shape letters: B batch, H heads, N queries, M keys, A axes.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.looks import Look, Tokens

Rows = Literal["renormalised", "as they are"]


def mean_distance(look: Look, distance_NM: Tensor, rows: Rows = "renormalised") -> Tensor:
    """(B, H): d of every head on every input; NaN where no query looks at a token with a place."""
    if rows not in ("renormalised", "as they are"):
        raise MiradaError(f"rows={rows!r}: must be 'renormalised' or 'as they are'")
    weights_BHNM = look.weights_BHNM[:, :, look.queries.num_extra :, look.keys.num_extra :]
    far_BHN = torch.einsum("bhnm,nm->bhn", weights_BHNM, distance_NM.to(weights_BHNM)).double()
    if rows == "renormalised":
        far_BHN = far_BHN / weights_BHNM.sum(-1).double()
    return far_BHN.nanmean(-1)


def distances(look: Look, extent: tuple[int, ...] | None = None, patch: tuple[int, ...] | None = None) -> Tensor:
    """(N, M) between the tokens that have a place: ‖place_i − place_j‖.

    `extent` is the size of the image in pixels and `patch` that of the finest cell; None: tokens of a text.
    """
    queries, keys = (centres(tokens.size, cells(tokens, extent, patch)) for tokens in (look.queries, look.keys))
    return torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")


def centres(size: tuple[int, ...], cell: tuple[float, ...]) -> Tensor:
    """(N, A) in raster order: (index + ½) · cell."""
    axes = torch.meshgrid(
        *((torch.arange(n, dtype=torch.float64) + 0.5) * side for n, side in zip(size, cell, strict=True)),
        indexing="ij",
    )
    return torch.stack([axis.flatten() for axis in axes], dim=-1)


def cells(tokens: Tokens, extent: tuple[int, ...] | None, patch: tuple[int, ...] | None = None) -> tuple[float, ...]:
    """Height and width of a cell: the smallest patch · 2^k of which so many cover the side.

    Cells at the edge may reach beyond the image, as padded patches do. Where no such k exists, the cells share the
    side evenly.
    """
    if extent is None:
        return (1.0,) * len(tokens.size)
    patch = (1,) * len(extent) if patch is None else patch
    return tuple(_cell(side, n, first) for side, n, first in zip(extent, tokens.size, patch, strict=True))


def _cell(side: int, num_cells: int, first: int) -> float:
    cell = first
    while -(-side // cell) > num_cells:
        cell *= 2
    return float(cell) if -(-side // cell) == num_cells else side / num_cells


def uniform_distance(size: tuple[int, ...], cell: tuple[float, ...]) -> float:
    """d of uniform attention from every cell of a grid to every cell.

        1/N² Σ_Δ ‖Δ · cell‖ Π_a (n_a − |Δ_a|)        over all offsets Δ, −n_a < Δ_a < n_a

    On a line of n tokens this is (n² − 1)/(3n).
    """
    offsets = torch.cartesian_prod(*(torch.arange(1 - n, n, dtype=torch.float64) for n in size)).reshape(-1, len(size))
    pairs = (torch.tensor(size, dtype=torch.float64) - offsets.abs()).prod(-1)
    far = (offsets * torch.tensor(cell, dtype=torch.float64)).norm(dim=-1)
    return float((pairs * far).sum() / math.prod(size) ** 2)
