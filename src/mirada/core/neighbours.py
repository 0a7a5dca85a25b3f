"""Who may look at whom: a neighbourhood N_i is a rule on the places of query i and key j.

    h_i = Σ_{j ∈ N_i} α(x_i, x_j) ψ_v(x_j)

Shape letters: N queries, M keys, E edges, A axes. `allowed` gives a boolean NM (with the leading dimensions of the
places): True where i may look at j. Rules combine with `&` (intersection) and `|` (union).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.places import Places, offsets
from mirada.errors import MiradaError


class Neighbours:
    """A rule from places to a mask."""

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        raise NotImplementedError

    def apply(self, move: Callable[[Tensor], Tensor]) -> Neighbours:
        """The same rule with its tensors elsewhere, for a layer that goes to another device."""
        changed = copy(self)
        for field in fields(self):  # type: ignore[arg-type]  # every rule is a dataclass
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                object.__setattr__(changed, field.name, move(value))
            elif isinstance(value, Neighbours):
                object.__setattr__(changed, field.name, value.apply(move))
        return changed

    def __and__(self, other: Neighbours) -> Neighbours:
        return Intersection(self, other)

    def __or__(self, other: Neighbours) -> Neighbours:
        return Union(self, other)


def _steps_back(queries: Places, keys: Places) -> Tensor:
    """i − j for every pair."""
    return queries.index_N[..., :, None] - keys.index_N[..., None, :]


def _seen_by_extra(allowed_NM: Tensor, queries: Places, keys: Places) -> Tensor:
    """Tokens without a place see everybody and are seen by everybody."""
    return F.pad(allowed_NM, (keys.num_extra, 0, queries.num_extra, 0), value=True)


def _must_have_axes(rule: str, queries: Places, keys: Places, num_axes: int | None = None) -> None:
    """Tokens of an image without places count as a line, on which these rules would mean something else."""
    for found in (queries.coords_NA.shape[-1], keys.coords_NA.shape[-1]):
        if found == 1 or num_axes not in (None, found):
            raise MiradaError(
                f"{rule} looks around on a plane and met tokens with {found} coordinate(s): give plane(height, width)"
            )


def _nearest(number: int | None, other: int | None) -> int | None:
    return other if number is None else number if other is None else min(number, other)


@dataclass(frozen=True)
class Band(Neighbours):
    """N_i = {j : i − before ≤ j ≤ i + after}; None is no limit. Full, causal and window attention are bands."""

    before: int | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        if (self.before or 0) < 0 or (self.after or 0) < 0:
            raise MiradaError(f"a band reaches before={self.before}, after={self.after}: both must be ≥ 0 or None")

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        back = _steps_back(queries, keys)
        allowed = torch.ones_like(back, dtype=torch.bool)
        if self.before is not None:
            allowed &= back <= self.before
        if self.after is not None:
            allowed &= back >= -self.after
        return allowed

    def __and__(self, other: Neighbours) -> Neighbours:
        if isinstance(other, Band):
            return Band(_nearest(self.before, other.before), _nearest(self.after, other.after))
        return super().__and__(other)


def full() -> Band:
    """N_i = {all j}: the complete graph, or the complete bipartite graph between queries and memory."""
    return Band()


def causal() -> Band:
    """N_i = {j : j ≤ i}."""
    return Band(after=0)


def window(reach: int) -> Band:
    """N_i = {j : |i − j| ≤ reach}; `window(k) & causal()` looks back only."""
    return Band(reach, reach)


@dataclass(frozen=True)
class Strided(Neighbours):
    """N_i = {j : i − l ≤ j ≤ i} ∪ {j ≤ i : (i − j) mod l = 0} (Child 2019, section 4.2, both halves in one head)."""

    stride: int

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise MiradaError(f"Strided(stride={self.stride}): must be at least 1")

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        back = _steps_back(queries, keys)
        return (back >= 0) & ((back <= self.stride) | (back % self.stride == 0))


@dataclass(frozen=True)
class Fixed(Neighbours):
    """N_i = {j ≤ i : ⌊j/l⌋ = ⌊i/l⌋} ∪ {j ≤ i : j mod l ≥ l − c} (Child 2019): block and c summary columns."""

    block: int
    num_summary: int

    def __post_init__(self) -> None:
        if not 0 <= self.num_summary <= self.block or self.block < 1:
            raise MiradaError(
                f"Fixed(block={self.block}, num_summary={self.num_summary}): needs 0 ≤ num_summary ≤ block ≥ 1"
            )

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        i, j = queries.index_N[..., :, None], keys.index_N[..., None, :]
        same_block = i // self.block == j // self.block
        return (j <= i) & (same_block | (j % self.block >= self.block - self.num_summary))


@dataclass(frozen=True)
class Grid(Neighbours):
    """N_{r,c} = {(r+a, c+b) : |a|, |b| ≤ radius}: the cells at Chebyshev distance ≤ radius, itself included."""

    radius: int

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise MiradaError(f"Grid(radius={self.radius}): must be at least 0")

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        _must_have_axes("Grid", queries, keys)
        return _seen_by_extra((offsets(queries, keys).abs() <= self.radius).all(-1), queries, keys)


@dataclass(frozen=True)
class Windows(Neighbours):
    """N_i = {j : ⌊(p_j − shift)/size⌋ = ⌊(p_i − shift)/size⌋ on every axis} (Swin, Liu 2021).

    Shifted by half a window this is Swin's cyclic roll with its mask: cells that only meet around the edge stay apart.
    """

    size: tuple[int, int]
    shift: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        if not isinstance(self.size, tuple) or len(self.size) != 2 or min(self.size) < 1:
            raise MiradaError(f"Windows(size={self.size}): must be (height, width), both at least 1")

    def group(self, coords_NA: Tensor) -> Tensor:
        size, shift = coords_NA.new_tensor(self.size), coords_NA.new_tensor(self.shift)
        return torch.div(coords_NA - shift, size, rounding_mode="floor")

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        _must_have_axes("Windows", queries, keys, num_axes=2)
        i, j = self.group(queries.coords_NA), self.group(keys.coords_NA)
        return _seen_by_extra((i[..., :, None, :] == j[..., None, :, :]).all(-1), queries, keys)


@dataclass(frozen=True, eq=False)
class Edges(Neighbours):
    """N_i = {j : (i, j) is an edge}: any graph, as `edge_2E` with row 0 the one who looks (i), row 1 who is seen (j).

    An edge given twice counts once.
    """

    edge_2E: Tensor
    num_queries: int
    num_keys: int

    def __post_init__(self) -> None:
        i_E, j_E = self.edge_2E.long()  # numbers of pairs soon exceed 32 bits
        code = torch.unique(i_E * self.num_keys + j_E)
        if code.numel() and not (0 <= int(self.edge_2E.min()) and int(self.edge_2E[0].max()) < self.num_queries
                                 and int(self.edge_2E[1].max()) < self.num_keys):  # fmt: skip
            raise MiradaError(f"an edge leaves the {self.num_queries} × {self.num_keys} nodes")
        object.__setattr__(self, "edge_2E", torch.stack([code // self.num_keys, code % self.num_keys]))

    def dense(self, values_E: Tensor) -> Tensor:
        """One value per edge (…, E) as a matrix (…, N, M) that is zero elsewhere."""
        matrix = values_E.new_zeros(*values_E.shape[:-1], self.num_queries, self.num_keys)
        matrix[..., self.edge_2E[0], self.edge_2E[1]] = values_E
        return matrix

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        adjacency_NM = self.dense(torch.ones_like(self.edge_2E[0], dtype=torch.bool))
        return adjacency_NM[queries.index_N[..., :, None], keys.index_N[..., None, :]]


@dataclass(frozen=True, eq=False)
class Mask(Neighbours):
    """N_i = {j : allowed_NM[i, j]}: written out; leading dimensions (B, H) are allowed."""

    allowed_NM: Tensor

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        return self.allowed_NM[..., queries.index_N[..., :, None], keys.index_N[..., None, :]]


@dataclass(frozen=True)
class NotSelf(Neighbours):
    """N_i = {j : j ≠ i}: the diagonal is hidden, as in locality self-attention (Lee 2021)."""

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        return _steps_back(queries, keys) != 0


@dataclass(frozen=True)
class Mirrored(Neighbours):
    """N_i = {j : i ∈ N′_j}: whom the rule lets look at i. `rule | Mirrored(rule)` looks both ways."""

    rule: Neighbours

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        return self.rule.allowed(keys, queries).mT


@dataclass(frozen=True)
class Intersection(Neighbours):
    """N_i = N¹_i ∩ N²_i."""

    one: Neighbours
    other: Neighbours

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        return self.one.allowed(queries, keys) & self.other.allowed(queries, keys)


@dataclass(frozen=True)
class Union(Neighbours):
    """N_i = N¹_i ∪ N²_i."""

    one: Neighbours
    other: Neighbours

    def allowed(self, queries: Places, keys: Places) -> Tensor:
        return self.one.allowed(queries, keys) | self.other.allowed(queries, keys)
