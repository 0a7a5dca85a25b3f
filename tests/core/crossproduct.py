"""Every combination of the parts as concrete calls, with distinct prime sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch

from mirada.core import (
    Additive,
    BiasTable,
    Bilinear,
    Decomposed,
    Distance,
    Dot,
    Edges,
    Fixed,
    GivenBias,
    GraphAdditive,
    Grid,
    LearnedTemperature,
    Mask,
    Mirrored,
    NotSelf,
    RandomFeatures,
    ScaledDot,
    Shaw,
    SoftCapped,
    Strided,
    Windows,
    causal,
    full,
    line,
    plane,
    window,
)  # fmt: skip
from mirada.core.heads import HeadMixing
from mirada.core.kernels import TABLE
from mirada.core.kernels.call import Call

B, H, N, K, V = 2, 3, 35, 7, 11  # 35 = 5 × 7 cells, which neither 4-tiles nor 3 × 2 windows divide
PLANE = (5, 7)

SCORES = {
    "scaled dot": lambda: ScaledDot(),
    "dot": lambda: Dot(),
    "bilinear": lambda: Bilinear(K, K, H),
    "additive": lambda: Additive(K, K, 13, H, bias=True),
    "graph additive": lambda: GraphAdditive(K, H),
    "learned temperature": lambda: LearnedTemperature(K),
    "distance": lambda: Distance(H),
    "soft-capped": lambda: SoftCapped(ScaledDot(), 2.0),
    "random features": lambda: RandomFeatures(K, 13),
}
NEIGHBOURS = {
    "full": lambda: full(),
    "causal": lambda: causal(),
    "window": lambda: window(3),
    "window, causal": lambda: window(5) & causal(),
    "window, one-sided": lambda: window(2) | NotSelf() & causal(),
    "strided": lambda: Strided(6),
    "fixed": lambda: Fixed(6, 2),
    "fixed, mirrored": lambda: Mirrored(Fixed(6, 2)),
    "grid": lambda: Grid(1),
    "grid, wide": lambda: Grid(2),
    "windows": lambda: Windows((3, 2)),
    "shifted windows": lambda: Windows((3, 2), (1, 1)),
    "windows that divide": lambda: Windows((5, 7)),
    "edges": lambda: Edges(torch.randint(0, N, (2, 89)), N, N),
    "mask": lambda: Mask(torch.rand(N, N) < 0.3),
    "not self": lambda: NotSelf(),
}
ON_A_PLANE = {"grid", "grid, wide", "windows", "shifted windows", "windows that divide"}
POSITIONS = {
    "none": lambda on_plane: None,
    "Shaw, keys": lambda on_plane: Shaw(K, 4),
    "Shaw, keys and values": lambda on_plane: Shaw(K, 4, V),
    "bias table": lambda on_plane: BiasTable(PLANE if on_plane else (N,), H),
    "decomposed": lambda on_plane: Decomposed(K, PLANE, PLANE) if on_plane else Shaw(K, 1),
    "given bias": lambda on_plane: GivenBias(torch.randn(H, N, N)),
}
MIXES = {"none": lambda: None, "re-attention": lambda: HeadMixing(H)}
PADDINGS = {"no padding": False, "padding": True}


def combinations() -> Iterator[tuple[str, str, str, str, str]]:
    for score in SCORES:
        for neighbours in NEIGHBOURS:
            for position in POSITIONS:
                for mix in MIXES:
                    for padding in PADDINGS:
                        yield score, neighbours, position, mix, padding


@cache
def tensors(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(7)
    q, k = (torch.randn(B, H, N, K, dtype=dtype, requires_grad=True) for _ in range(2))
    return q, k, torch.randn(B, H, N, V, dtype=dtype, requires_grad=True)


@cache
def part(make, *given, dtype: torch.dtype | None = None):
    """Parts are made once: nothing changes them, as gradients are asked for and never accumulated."""
    torch.manual_seed(7)
    made = make(*given)
    return made.to(dtype).eval() if isinstance(made, torch.nn.Module) else made


VALID = torch.ones(B, N, dtype=torch.bool)
VALID[1, 23:] = False
LINE, CELLS = line(N), plane(*PLANE)


def make_call(score: str, neighbours: str, position: str, mix: str, padding: str, dtype=torch.float64) -> Call:
    on_plane = neighbours in ON_A_PLANE
    places = CELLS if on_plane else LINE
    return Call(
        *tensors(dtype),
        part(SCORES[score], dtype=dtype),
        part(NEIGHBOURS[neighbours]),
        part(POSITIONS[position], on_plane, dtype=dtype),
        part(MIXES[mix], dtype=dtype),
        valid_BM=VALID if PADDINGS[padding] else None,
        queries=places,
        keys=places,
    )


def leaves(call: Call) -> list[torch.Tensor]:
    """Everything a gradient must reach: q, k, v and the parameters of the parts."""
    parts = [part for part in (call.score, call.position, call.mix) if part is not None]
    return [call.q_BHNK, call.k_BHMK, call.v_BHMV, *(p for part in parts for p in part.parameters())]


# Those that give gradients; the one that does not has tests of its own.
FAST_KERNELS = [kernel for kernel in TABLE if kernel.name not in ("reference", "distances")]
