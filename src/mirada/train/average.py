"""An exponential moving average of the weights, which is evaluated and kept instead of the weights themselves.

w̄ ← w̄ + (1 − β_t)(w − w̄),   β_t = min(β, (1 + t)/(10 + t))
"""

from __future__ import annotations

import copy

import torch
from torch import nn


class MovingAverage:
    """A copy of the model that follows it. With β = 0 it is the model itself."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self._pairs = self._collect(model)

    def _collect(self, model: nn.Module) -> tuple[list, list, list, list]:
        own, theirs = self.module.state_dict(), model.state_dict()
        floats = [name for name, tensor in own.items() if tensor.is_floating_point()]
        others = [name for name in own if name not in set(floats)]
        return (
            [own[n] for n in floats],
            [theirs[n] for n in floats],
            [own[n] for n in others],
            [theirs[n] for n in others],
        )

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Follow the model after step 0, 1, …: averages of weights and of running statistics, copies of counters."""
        decay = min(self.decay, (1 + step) / (10 + step))
        own, theirs, own_other, their_other = self._pairs
        torch._foreach_lerp_(own, theirs, 1 - decay)
        for mine, yours in zip(own_other, their_other, strict=True):
            mine.copy_(yours)
