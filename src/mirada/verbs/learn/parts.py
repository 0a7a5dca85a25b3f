"""The parts of the core by name, in sizes that can be looked at.

A rule is a mapping with a `kind` and its numbers: {"kind": "window", "reach": 2}. Several rules are intersected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import (
    Additive,
    Appended,
    Averaged,
    BiasTable,
    Bilinear,
    Collaborative,
    Concatenated,
    Distance,
    Dot,
    Edges,
    Fixed,
    GraphAdditive,
    Grid,
    Learned,
    LearnedTemperature,
    Neighbours,
    NotSelf,
    Places,
    RandomFeatures,
    ReAttention,
    Relative,
    Rotary,
    ScaledDot,
    Score,
    Shaw,
    Sinusoidal,
    SoftCapped,
    Strided,
    Windows,
    causal,
    full,
    line,
    plane,
    window,
)
from mirada.errors import MiradaError, nearest

Rule = Mapping[str, Any]

SCORES: dict[str, Callable[[Concatenated, int], Score]] = {
    "scaled dot": lambda heads, width: heads.default_score(),
    "dot": lambda heads, width: Dot(),
    "divided by width": lambda heads, width: ScaledDot(1 / width),  # a slip of lectures, to be seen
    "bilinear": lambda heads, width: Bilinear(width, width, heads.num_heads),
    "additive": lambda heads, width: Additive(width, width, width, heads.num_heads),
    "graph additive": lambda heads, width: GraphAdditive(width, heads.num_heads),
    "learned temperature": lambda heads, width: LearnedTemperature(width),
    "distance": lambda heads, width: Distance(heads.num_heads),
    "soft capped": lambda heads, width: SoftCapped(ScaledDot(), cap=1.0),
    "random features": lambda heads, width: RandomFeatures(width, 4 * width),
}
HEADS: dict[str, type[Concatenated]] = {
    "concatenated": Concatenated,
    "collaborative": Collaborative,
    "re-attention": ReAttention,
    "averaged": Averaged,
}
# The numbers of each rule, with the least and the most that is shown; edges are pairs.
RULES: dict[str, dict[str, tuple[int, int]]] = {
    "full": {},
    "causal": {},
    "window": {"reach": (0, 64)},
    "strided": {"stride": (1, 64)},
    "fixed": {"block": (1, 64), "num_summary": (0, 64)},
    "not self": {},
    "grid": {"radius": (0, 8)},
    "windows": {"size": (1, 16), "shift": (0, 15)},
    "edges": {},
}
POSITIONS = ("none", "sinusoidal", "learned", "appended", "rotary", "relative", "bias table")
MAX_DISTANCE = 4  # of relative positions
ON_A_PLANE = ("grid", "windows")
# Only one of these has a say in a neighbourhood: two patterns at once are no mechanism that anybody uses.
PATTERNS = ("strided", "fixed", "grid", "windows", "edges")
MAX_EDGES = 4096


def one_of(name: str, names: Sequence[str], what: str) -> str:
    if name not in names:
        raise MiradaError(f"{what} {name!r} is not known{nearest(name, names)}: there are {', '.join(names)}")
    return name


def within(value: object, low: float, high: float, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise MiradaError(f"{what} is {value!r}: must be between {low:g} and {high:g}")


def checked(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Every rule complete and within its limits."""
    found: list[dict[str, Any]] = []
    for rule in rules:
        kind = one_of(str(rule.get("kind")), tuple(RULES), "the neighbourhood")
        numbers = {name: rule.get(name) for name in RULES[kind]}
        if kind == "windows" and numbers["shift"] is None:
            numbers["shift"] = 0
        for name, (low, high) in RULES[kind].items():
            within(numbers[name], low, high, f"{name} of {kind}")
            if numbers[name] != int(numbers[name] or 0):
                raise MiradaError(f"{name} of {kind} is {numbers[name]}: must be a whole number")
        if kind == "fixed":
            Fixed(int(numbers["block"] or 0), int(numbers["num_summary"] or 0))  # says what is wrong
        edges = {"edges": [tuple(edge) for edge in rule.get("edges") or ()]} if kind == "edges" else {}
        found.append({"kind": kind, **{name: int(number or 0) for name, number in numbers.items()}, **edges})
    patterns = [rule["kind"] for rule in found if rule["kind"] in PATTERNS]
    if len(patterns) > 1:
        raise MiradaError(f"{' and '.join(patterns)} are patterns of which a neighbourhood has one: choose one of them")
    return found or [{"kind": "full"}]


def is_on_a_plane(rules: Sequence[Rule]) -> bool:
    return any(rule["kind"] in ON_A_PLANE for rule in rules)


def make_places(num_tokens: int, rules: Sequence[Rule], columns: int | None) -> Places:
    """A line, or for rules that look around on a plane rows of `columns` tokens."""
    if not is_on_a_plane(rules):
        return line(num_tokens)
    if columns is None:
        columns = max(c for c in range(1, int(num_tokens**0.5) + 1) if num_tokens % c == 0)
        columns = num_tokens // columns
    if columns < 1 or num_tokens % columns:
        raise MiradaError(f"{num_tokens} tokens do not fill rows of {columns}: choose columns that divide their number")
    return plane(num_tokens // columns, columns)


def make_neighbours(rules: Sequence[Rule], num_tokens: int) -> Neighbours:
    return reduce(and_, [_one_rule(rule, num_tokens) for rule in rules])


def _one_rule(rule: Rule, num_tokens: int) -> Neighbours:
    simple: dict[str, Callable[[], Neighbours]] = {
        "full": full,
        "causal": causal,
        "window": lambda: window(rule["reach"]),
        "strided": lambda: Strided(rule["stride"]),
        "fixed": lambda: Fixed(rule["block"], rule["num_summary"]),
        "not self": NotSelf,
        "grid": lambda: Grid(rule["radius"]),
        "windows": lambda: Windows((rule["size"],) * 2, (rule["shift"],) * 2),
        "edges": lambda: _edges(rule["edges"], num_tokens),
    }
    return simple[rule["kind"]]()


def _edges(pairs: Sequence[tuple[int, ...]], num_tokens: int) -> Edges:
    if len(pairs) > MAX_EDGES:
        raise MiradaError(f"{len(pairs)} edges are too many to look at: give at most {MAX_EDGES}")
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(end, int) and 0 <= end < num_tokens for end in pair):
            raise MiradaError(f"the edge {pair} leaves the {num_tokens} tokens: both ends count from 0")
    edge_2E = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    return Edges(edge_2E, num_tokens, num_tokens)


class Placed(nn.Module):
    """Tokens with their position, where it is added to them, and how wide they are then."""

    def __init__(self, name: str, dim: int, places: Places) -> None:
        super().__init__()
        self.add: nn.Module | None = None
        self.dim = dim
        axes = len(places.size)
        if name in ("sinusoidal", "appended"):
            self.add = Sinusoidal(dim, axes)
        if name == "appended":
            self.add, self.dim = Appended(Sinusoidal(dim, axes)), 2 * dim
        if name == "learned":
            self.add = Learned(places.size, dim)

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        return x_BND if self.add is None else self.add(x_BND, places)


def make_position(name: str, heads: Concatenated, width: int, places: Places) -> Rotary | Relative | None:
    """A position that acts inside attention; None for those that are added before."""
    if name == "rotary":
        turned = heads.shared_dim if isinstance(heads, Collaborative) else width
        return Rotary(width, axes=len(places.size), rotary_dim=turned)
    if name == "relative":
        return Shaw(width, MAX_DISTANCE, value_dim=heads.value_dim)
    return BiasTable(places.size, heads.num_heads) if name == "bias table" else None


def width_of_queries(heads: Concatenated, dim: int) -> int:
    """Of one head; collaborative heads are wider than dim / num_heads."""
    with torch.no_grad():
        return heads.queries(torch.zeros(1, 1, dim)).shape[-1]
