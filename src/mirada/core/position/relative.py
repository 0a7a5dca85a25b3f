"""Positions that enter the logits: logits_ij + bias(q_i, place_i, place_j).

Shape letters: B batch, H heads, N queries, M keys, K head dim, V value dim, R rows of a table. Heads are dimension 1
and blocks may stand between heads and N, as in `score`. `bias` covers the tokens with a place; extra tokens get none.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core.places import Places, offsets
from mirada.core.remembered import remembered
from mirada.errors import MiradaError


class Relative(nn.Module):
    """bias(q, queries, keys) → (B or 1, H or 1, …, N, M), added to the logits after their scale."""

    def bias(self, q: Tensor, queries: Places, keys: Places) -> Tensor:
        raise NotImplementedError


class Shaw(Relative):
    """logits_ij = q_i·(k_j + a^K_ij)/√K and h_i = Σ_j α_ij (v_j + a^V_ij), a_ij = w_{clip(j−i, −k, k)} (Shaw 2018).

    Tables have 2k+1 rows, shared by the heads. `value_dim=None` leaves a^V out.
    """

    def __init__(self, head_dim: int, max_distance: int, value_dim: int | None = None) -> None:
        super().__init__()
        self.max_distance = max_distance
        num_rows = 2 * max_distance + 1
        self.key_table = nn.Parameter(torch.randn(num_rows, head_dim) * head_dim**-0.5)
        self.value_table = (
            None if value_dim is None else nn.Parameter(torch.randn(num_rows, value_dim) * value_dim**-0.5)
        )

    def _row(self, queries: Places, keys: Places) -> Tensor:
        if queries.coords_NA.shape[-1] == 1:
            offset = offsets(queries, keys)[..., 0]
        else:  # on a plane, the order is the raster order
            i, j = (places.index_N[..., places.num_extra :] for places in (queries, keys))
            offset = j[..., None, :] - i[..., :, None]
        return offset.clamp(-self.max_distance, self.max_distance) + self.max_distance

    def bias(self, q: Tensor, queries: Places, keys: Places) -> Tensor:
        # q·a for the 2k+1 rows, then pick: N·R numbers where the a_ij themselves would be N·M·K.
        by_row = (q @ self.key_table.T) * q.shape[-1] ** -0.5
        row = self._row(queries, keys)
        return by_row.gather(-1, row.expand(*q.shape[:-2], *row.shape[-2:]))

    def values(self, weights: Tensor, queries: Places, keys: Places) -> Tensor:
        """Σ_j α_ij a^V_ij: the weights are first summed by row of the table. Extra tokens neither give nor get any."""
        weights = weights[..., queries.num_extra :, keys.num_extra :]
        row = self._row(queries, keys)
        by_row = weights.new_zeros(*weights.shape[:-1], 2 * self.max_distance + 1)
        by_row = by_row.scatter_add(-1, row.expand(weights.shape), weights)
        assert self.value_table is not None
        return F.pad(by_row @ self.value_table, (0, 0, queries.num_extra, 0))


class BiasTable(Relative):
    """bias_ij = T_h[place_i − place_j]: one number per head and offset (Swin, Liu 2021, eq. 4).

    `size` is the largest extent per axis: a (2·height−1)(2·width−1) × H table; offsets outside it are clipped.
    """

    def __init__(self, size: tuple[int, ...], num_heads: int) -> None:
        super().__init__()
        self.size = tuple(size)
        num_rows = 1
        for extent in self.size:
            num_rows *= 2 * extent - 1
        self.table = nn.Parameter(torch.empty(num_rows, num_heads))
        nn.init.trunc_normal_(self.table, std=0.02)

    def bias(self, q: Tensor, queries: Places, keys: Places) -> Tensor:
        offset = -offsets(queries, keys)
        if offset.shape[-1] != len(self.size):
            raise MiradaError(f"a bias table of size {self.size} met places with {offset.shape[-1]} axes")
        row = torch.zeros_like(offset[..., 0])
        for axis, extent in enumerate(self.size):
            row = row * (2 * extent - 1) + offset[..., axis].clamp(1 - extent, extent - 1) + extent - 1
        if row.ndim == q.ndim:  # each sample has its own places: (B, 1, N, M)
            return _looked_up(self.table, row[:, 0]).movedim(-1, 1)
        return _looked_up(self.table, row).movedim(-1, 0)[None]


class Decomposed(Relative):
    """bias_ij = q_i·R^h_{Δrow} + q_i·R^w_{Δcolumn} (MViTv2, Li 2022, eq. 4); q and k may have grids of different size.

    With sizes n_q ≠ n_k on an axis, Δ = i·max(n_k/n_q, 1) − j·max(n_q/n_k, 1) + (n_k − 1)·max(n_q/n_k, 1).
    """

    def __init__(self, head_dim: int, query_size: tuple[int, int], key_size: tuple[int, int]) -> None:
        super().__init__()
        rows, columns = (2 * max(n_q, n_k) - 1 for n_q, n_k in zip(query_size, key_size, strict=True))
        self.row_table = nn.Parameter(torch.empty(rows, head_dim))
        self.column_table = nn.Parameter(torch.empty(columns, head_dim))
        for table in (self.row_table, self.column_table):
            nn.init.trunc_normal_(table, std=0.02)

    def bias(self, q: Tensor, queries: Places, keys: Places) -> Tensor:
        rows = [
            _resize_rows(table, 2 * max(n_q, n_k) - 1)
            for table, n_q, n_k in zip((self.row_table, self.column_table), queries.size, keys.size, strict=True)
        ]
        if queries.is_whole and keys.is_whole:
            return _on_grids(q, rows, queries.size, keys.size)
        total = None
        for axis, rows_RK in enumerate(rows):
            i, j = queries.coords_NA[..., :, None, axis], keys.coords_NA[..., None, :, axis]
            row = _stretched(i, j, queries.size[axis], keys.size[axis])
            by_row = q @ rows_RK.T
            part = by_row.gather(-1, row.expand(*q.shape[:-2], *row.shape[-2:]))
            total = part if total is None else total + part
        assert total is not None
        return total


def _stretched(i: Tensor, j: Tensor, n_q: int, n_k: int) -> Tensor:
    """Δ of query i and key j on one axis: the row of a table of 2·max(n_q, n_k) − 1."""
    stretch_q, stretch_k = max(n_k / n_q, 1.0), max(n_q / n_k, 1.0)
    return (i * stretch_q - j * stretch_k + (n_k - 1) * stretch_k).long()


@remembered
def _stretched_on_axis(device: torch.device, n_q: int, n_k: int) -> Tensor:
    return _stretched(torch.arange(n_q, device=device)[:, None], torch.arange(n_k, device=device), n_q, n_k)


def _on_grids(q: Tensor, rows: list[Tensor], query_size: tuple[int, ...], key_size: tuple[int, ...]) -> Tensor:
    """All pairs of two grids: q meets n_k rows of each table, not 2·max(n_q, n_k) − 1, and no pair is looked up."""
    q_rcK = q.unflatten(-2, query_size)
    down, right = (
        _looked_up(table_RK, _stretched_on_axis(q, n_q, n_k))
        for table_RK, n_q, n_k in zip(rows, query_size, key_size, strict=True)
    )
    by_row = torch.einsum("...rcK,rmK->...rcm", q_rcK, down)
    by_column = torch.einsum("...rcK,cmK->...rcm", q_rcK, right)
    return (by_row[..., :, None] + by_column[..., None, :]).flatten(-2).flatten(-3, -2)


def _looked_up(table_RK: Tensor, row: Tensor) -> Tensor:
    """table[row], whose gradient adds up in a fixed order on any number of threads, and faster."""
    return table_RK.index_select(0, row.flatten()).unflatten(0, row.shape)


def _resize_rows(table_RK: Tensor, num_rows: int) -> Tensor:
    if table_RK.shape[0] == num_rows:
        return table_RK
    return F.interpolate(table_RK.T[None], size=num_rows, mode="linear")[0].T


class GivenBias(Relative):
    """bias_ij as written out, (…, N, M), by the tokens' index; what it says of extra tokens is not used."""

    def __init__(self, bias_NM: Tensor) -> None:
        super().__init__()
        self.register_buffer("bias_NM", bias_NM, persistent=False)
        self.bias_NM: Tensor

    def bias(self, q: Tensor, queries: Places, keys: Places) -> Tensor:
        i, j = (places.index_N[..., places.num_extra :] for places in (queries, keys))
        return self.bias_NM[..., i[..., :, None], j[..., None, :]]
