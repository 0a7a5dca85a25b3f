"""The learning rate as a function of the step alone, so that resuming needs no state.

cosine     η · ½(1 + cos(π (t − w)/(T − w)))          after a linear warm-up of w steps
linear     η · (T − t)/(T − w)
constant   η
noam       d^{−½} · min(t^{−½}, t · w^{−3/2}), t from 1 (Vaswani 2017, eq. 3); η multiplies it
"""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["cosine", "linear", "constant", "noam"]


def learning_rate(
    step: int, *, peak: float, total: int, warmup: int, schedule: Schedule, dim: int | None = None
) -> float:
    """Rate for step 0, 1, …, total − 1."""
    if schedule == "noam":
        assert dim is not None
        t = step + 1
        return peak * dim**-0.5 * min(t**-0.5, t * max(warmup, 1) ** -1.5)
    if step < warmup:
        return peak * (step + 1) / warmup
    if schedule == "constant":
        return peak
    progress = (step - warmup) / max(total - warmup, 1)
    if schedule == "linear":
        return peak * (1 - progress)
    return peak * 0.5 * (1 + math.cos(math.pi * progress))
