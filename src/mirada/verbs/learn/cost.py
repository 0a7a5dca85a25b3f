"""What a neighbourhood costs as the number of tokens grows, by counting pairs, never by a clock.

    pairs(N) = Σ_i |N_i|                          flops(N) = 2 (4 N D² + 2 pairs(N) D)

A rule on a line says which steps back s = i − j are allowed, and N − |s| pairs are s apart. So pairs are counted in N
steps, where the mask would have N². On a plane pairs are counted by their offset in rows and columns. A given graph
keeps its mean number of neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mirada.core import line
from mirada.verbs.learn.attend import DIMS, MAX_TOKENS
from mirada.verbs.learn.parts import Rule, checked, is_on_a_plane, make_neighbours, within

LENGTHS = tuple(2**power for power in range(1, 17))


@dataclass(frozen=True)
class Cost:
    lengths: list[int]
    pairs: list[int]
    pairs_full: list[int]
    flops: list[int]
    flops_full: list[int]


def cost(neighbours: Sequence[Rule] = (), *, dim: int = 16, num_tokens: int = 64) -> Cost:
    """Pairs and operations of one layer at each length; `num_tokens` is how many nodes a given graph has."""
    within(dim, *DIMS, "dim")
    within(num_tokens, 1, MAX_TOKENS, "num_tokens")
    rules = checked(neighbours)
    pairs = [_pairs_at(length, rules, num_tokens) for length in LENGTHS]
    full = [length**2 for length in LENGTHS]
    return Cost(list(LENGTHS), pairs, full, *([_flops(n, p, dim) for n, p in zip(LENGTHS, each, strict=True)]
                                              for each in (pairs, full)))  # fmt: skip


def _flops(num_tokens: int, num_pairs: int, dim: int) -> int:
    return 2 * (4 * num_tokens * dim**2 + 2 * num_pairs * dim)


def _pairs_at(length: int, rules: Sequence[Rule], num_tokens: int) -> int:
    if any(rule["kind"] == "edges" for rule in rules):
        return round(count_edges(rules, num_tokens) * length / num_tokens)
    if is_on_a_plane(rules):
        height = 2 ** ((length.bit_length() - 1) // 2)
        return count_on_a_plane(rules, height, length // height)
    return count_on_a_line(rules, length)


def count_edges(rules: Sequence[Rule], num_tokens: int) -> int:
    return int(make_neighbours(rules, num_tokens).allowed(line(num_tokens), line(num_tokens)).sum())


def count_on_a_line(rules: Sequence[Rule], length: int) -> int:
    """Pairs of one or several checked rules on a line, as the mask would count them."""
    back = torch.arange(1 - length, length)
    allowed = _steps_allowed(rules, back)
    fixed = next((rule for rule in rules if rule["kind"] == "fixed"), None)
    if fixed is None:
        return int((allowed * (length - back.abs())).sum())
    # Key j is seen from i = j to the end if it is a summary, else to the end of its block.
    seen_within = allowed[length - 1 :].cumsum(0)  # number of allowed steps 0 … s
    j, block = torch.arange(length), int(fixed["block"])
    last = (j // block * block + block - 1).clamp(max=length - 1)
    last = last.masked_fill(j % block >= block - fixed["num_summary"], length - 1)
    return int(seen_within[last - j].sum())


def count_on_a_plane(rules: Sequence[Rule], height: int, width: int) -> int:
    pattern = next(rule for rule in rules if rule["kind"] in ("grid", "windows"))
    reach = pattern["radius"] if pattern["kind"] == "grid" else pattern["size"] - 1
    offset = torch.arange(-reach, reach + 1)
    rows, columns = (_pairs_apart(pattern, offset, extent) for extent in (height, width))
    steps = offset[:, None] * width + offset  # forward in raster order
    return int((rows[:, None] * columns * _steps_allowed(rules, -steps)).sum())


def _pairs_apart(pattern: Rule, offset: Tensor, extent: int) -> Tensor:
    """How many pairs on one axis are that far apart: on the whole axis, or within its windows."""
    lengths = torch.tensor([extent])
    if pattern["kind"] == "windows":
        group = torch.div(torch.arange(extent) - pattern["shift"], pattern["size"], rounding_mode="floor")
        lengths = group.unique(return_counts=True)[1]
    return (lengths[:, None] - offset.abs()).clamp(min=0).sum(0)


def _steps_allowed(rules: Sequence[Rule], back: Tensor) -> Tensor:
    """What the rules that look at i − j alone say of it."""
    allowed = torch.ones_like(back, dtype=torch.bool)
    for rule in rules:
        allowed &= _one_rule(rule, back)
    return allowed


def _one_rule(rule: dict[str, Any] | Rule, back: Tensor) -> Tensor:
    kind = rule["kind"]
    if kind == "window":
        return back.abs() <= rule["reach"]
    if kind == "strided":
        return (back >= 0) & ((back <= rule["stride"]) | (back % rule["stride"] == 0))
    if kind == "not self":
        return back != 0
    return back >= 0 if kind in ("causal", "fixed") else torch.ones_like(back, dtype=torch.bool)
