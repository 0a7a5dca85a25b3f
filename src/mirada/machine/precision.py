"""Which precision, and which way to update the weights, is fastest on this processor: tried, not assumed.

A processor without bfloat16 units computes products in it many times slower than in float32, and torch does not say so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch.nn import functional as F

Precision = Literal["float32", "bfloat16"]

ROWS, ROUNDS = 256, 5
MOST_WEIGHTS = 2_000_000  # that are updated on trial
GAIN = 0.9  # of the time: what gains less may be noise, and float32 and the fused update are the safe side


@dataclass(frozen=True)
class Trial:
    """Seconds of a product in two precisions, and of an update of the weights in two ways."""

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

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


Try = Callable[[Sequence[torch.Size]], Trial]


def try_out(shapes: Sequence[torch.Size]) -> Trial:
    """On the CPU, with the largest matrix and the first weights of a model of these shapes; some tenths of a second."""
    matrices = [tuple(shape) for shape in shapes if len(shape) == 2] or [(256, 256)]
    weight = torch.randn(max(matrices, key=math.prod))
    rows = torch.randn(ROWS, weight.shape[1])

    def product(precision: torch.dtype) -> None:
        with torch.autocast("cpu", precision, enabled=precision != torch.float32), torch.no_grad():
            F.linear(rows, weight)

    steps = {way: _optimiser(shapes, way).step for way in ("fused", "foreach")}
    return Trial(
        **_fastest(
            {
                "float32": lambda: product(torch.float32),
                "bfloat16": lambda: product(torch.bfloat16),
                **steps,
            }
        )
    )


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


def _fastest(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each, tried in turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(1 + ROUNDS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - begin)
    return {name: min(times[1:]) for name, times in taken.items()}
