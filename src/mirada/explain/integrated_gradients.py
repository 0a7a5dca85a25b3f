"""Integrated gradients (Sundararajan 2017): the change of the score from a baseline, shared out among the inputs.

    φ = (x − x₀) ⊙ ∫₀¹ ∂y_c(x₀ + t (x − x₀))/∂x dt,     Σ φ = y_c(x) − y_c(x₀)

By the midpoints of `steps` equal parts. It needs no attention: any model with a gradient has it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.trace import require_gradients


def integrated_gradients(
    score: Callable[[Tensor], Tensor], inputs: Tensor, baseline: Tensor, *, steps: int = 16
) -> Tensor:
    """φ of the shape of the inputs; `score` gives one number per sample."""
    if steps < 1:
        raise MiradaError(f"steps={steps}: integrated gradients need at least 1")
    require_gradients()
    difference = inputs - baseline
    total = torch.zeros_like(inputs)
    for step in range(steps):
        with torch.enable_grad():
            point = (baseline + (step + 0.5) / steps * difference).detach().requires_grad_()
            (gradient,) = torch.autograd.grad(score(point).sum(), point)
        total += gradient
    return difference * total / steps
