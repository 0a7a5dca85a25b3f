"""The learning rate as a function of the step alone, so that resuming needs no state.

cosine     η · ½(1 + cos(π (t − w)/(T − w)))          after a linear warm-up of w steps
linear     η · (T − t)/(T − w)
poly       η · ((T − t)/(T − w))^0.9                  DeepLab's, which TransUNet has
constant   η
noam       η · min(t/w, √(w/t)), t from 1: with η = (d·w)^−½ this is d^−½ · min(t^−½, t · w^−³ᐟ²) (Vaswani 2017, eq. 3)
"""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["cosine", "linear", "constant", "noam", "poly"]


def learning_rate(step: int, *, peak: float, total: int, warmup: int, schedule: Schedule) -> float:
    """Rate for step 0, 1, …, total − 1; `peak` is the highest, at the end of the warm-up."""
    if step < warmup:
        return peak * (step + 1) / warmup
    if schedule == "constant":
        return peak
    if schedule == "noam":
        return peak * (max(warmup, 1) / (step + 1)) ** 0.5
    progress = (step - warmup) / max(total - warmup, 1)
    if schedule == "linear":
        return peak * (1 - progress)
    if schedule == "poly":
        return peak * (1 - progress) ** 0.9
    return peak * 0.5 * (1 + math.cos(math.pi * progress))


def noam_peak(dim: int, warmup: int) -> float:
    """(d·w)^−½, the highest rate of the paper: 6.99e-4 for d = 512 and w = 4000."""
    return (dim * warmup) ** -0.5
