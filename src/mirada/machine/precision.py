"""Which precision, and which way to update the weights, is fastest on this processor: tried, not assumed.

A processor without bfloat16 units computes products in it many times slower than in float32, and torch does not say so.
With such units a product gains, but a whole step may still lose by what is converted around it: so steps are tried, of
the very model, where the product alone is not hopeless.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import torch
from torch.nn import functional as F

Way = Callable[[], object]
Precision = Literal["float32", "bfloat16"]

ROWS, ROUNDS = 256, 5
SMALLEST = (256, 256)  # of a product that says something about the processor
SECONDS = 2.0  # of whole steps: after that, no further round
HOPELESS = 2.0  # times slower in the product alone: there are no units for it
MOST_WEIGHTS = 2_000_000  # that are updated on trial
GAIN = 0.9  # of the time: what gains less may be noise, and float32 and the fused update are the safe side


@dataclass(frozen=True)
class Trial:
    """Seconds of a step (of a product, where that says enough) in two precisions, and of two ways to update weights."""

    float32: float
    bfloat16: float
    fused: float
    foreach: float

    @property
    def precision(self) -> Precision:
        return "bfloat16" if self.bfloat16 < GAIN * self.float32 else "float32"

    @property
    def is_fused(self) -> bool:
        return not self.foreach < GAIN * self.fused

    @property
    def slower(self) -> float:
        """How many times slower bfloat16 is than float32."""
        return self.bfloat16 / self.float32

    @property
    def is_hopeless(self) -> bool:
        return self.slower > HOPELESS

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


Step = Callable[[torch.dtype], object]
Try = Callable[[Sequence[torch.Size], Step], Trial]


def try_out(shapes: Sequence[torch.Size], step: Step) -> Trial:
    """On the CPU: products and updates as a model of these shapes has them, then the given step."""
    found = try_products(shapes)
    return found if found.is_hopeless else replace(found, **in_turns(_in_both(step), SECONDS))


def try_products(shapes: Sequence[torch.Size]) -> Trial:
    """Of the largest matrix, a kernel being one too; some tenths of a second."""
    matrices = [(shape[0], shape.numel() // shape[0]) for shape in shapes if len(shape) > 1]
    weight = torch.randn(max([SMALLEST, *matrices], key=math.prod))
    rows = torch.randn(ROWS, weight.shape[1])

    def product(precision: torch.dtype) -> None:
        with torch.autocast("cpu", precision, enabled=precision != torch.float32), torch.no_grad():
            F.linear(rows, weight)

    updates: dict[str, Way] = {way: _optimiser(shapes, way).step for way in ("fused", "foreach")}
    return Trial(**in_turns(_in_both(product) | updates))


def _in_both(work: Step) -> dict[str, Way]:
    return {"float32": lambda: work(torch.float32), "bfloat16": lambda: work(torch.bfloat16)}


def _optimiser(shapes: Sequence[torch.Size], way: str) -> torch.optim.Optimizer:
    weights: list[torch.nn.Parameter] = []
    count = 0
    for shape in shapes:
        if weights and count + shape.numel() > MOST_WEIGHTS:
            break
        weights.append(torch.nn.Parameter(torch.zeros(shape)))
        weights[-1].grad = torch.zeros(shape)
        count += shape.numel()
    return torch.optim.AdamW(weights, lr=0.0, fused=way == "fused", foreach=way == "foreach")


def in_turns(ways: dict[str, Way], seconds: float = math.inf) -> dict[str, float]:
    """The least time of each, tried in turns until so many seconds are over, but at least twice."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    started = time.perf_counter()
    for number in range(1 + ROUNDS):  # of which the first does not count
        if number > 2 and time.perf_counter() - started > seconds:
            break
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - begin)
    return {name: min(times[1:]) for name, times in taken.items()}
