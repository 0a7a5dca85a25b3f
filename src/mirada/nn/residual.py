"""The direct path around a sublayer: y = x + F(x), normalised before or after.

A layer takes the kind of residual as a function that wraps a sublayer:

    EncoderLayer(attention, mlp, pre_norm(lambda: nn.LayerNorm(dim)))
    EncoderLayer(attention, mlp, post_norm(lambda: nn.LayerNorm(dim), lambda: Dropout(0.1)))

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError

Wrap = Callable[[nn.Module], nn.Module]
Make = Callable[[], nn.Module]


class PreNorm(nn.Module):
    """y = x + branch(inner(norm(x))): GPT-2, ViT. The stack needs a norm at its end, as no layer norms its output.

    `branch` is what happens to the sublayer's result: Dropout, StochasticDepth, LayerScale, or several in a Sequential.
    """

    def __init__(self, inner: nn.Module, norm: nn.Module, branch: nn.Module | None = None) -> None:
        super().__init__()
        self.norm, self.inner = norm, inner
        self.branch = nn.Identity() if branch is None else branch

    def forward(self, x_BND: Tensor, *others: Any, **context: Any) -> Tensor:
        return x_BND + self.branch(self.inner(self.norm(x_BND), *others, **context))


class PostNorm(nn.Module):
    """y = norm(x + branch(inner(x))): the Transformer of Vaswani 2017 (section 3.1), BERT."""

    def __init__(self, inner: nn.Module, norm: nn.Module, branch: nn.Module | None = None) -> None:
        super().__init__()
        self.inner, self.norm = inner, norm
        self.branch = nn.Identity() if branch is None else branch

    def forward(self, x_BND: Tensor, *others: Any, **context: Any) -> Tensor:
        return self.norm(x_BND + self.branch(self.inner(x_BND, *others, **context)))


def pre_norm(norm: Make, branch: Make = nn.Identity) -> Wrap:
    """Wraps each sublayer in a PreNorm with a norm and a branch of its own."""
    return lambda inner: PreNorm(inner, norm(), branch())


def post_norm(norm: Make, branch: Make = nn.Identity) -> Wrap:
    """Wraps each sublayer in a PostNorm with a norm and a branch of its own."""
    return lambda inner: PostNorm(inner, norm(), branch())


class StochasticDepth(nn.Module):
    """y = x·b/(1 − p), b ~ Bernoulli(1 − p) once per sample: the sublayer is skipped with probability p (Huang 2016).

    In training only; the expectation is x.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise MiradaError(f"stochastic depth rate={rate}: must be at least 0 and below 1")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        keep = 1 - self.rate
        kept_B = torch.empty(x.shape[0], *(1,) * (x.ndim - 1), dtype=x.dtype, device=x.device).bernoulli_(keep)
        return x * (kept_B / keep)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def rising_rates(last: float, depth: int) -> list[float]:
    """p_l = last · l/(depth − 1), l = 0 … depth − 1: the first layer is always kept, the last drops most."""
    return [last * layer / max(depth - 1, 1) for layer in range(depth)]


class LayerScale(nn.Module):
    """y = λ ⊙ x with a learned λ per channel that starts small (CaiT, Touvron 2021, eq. 4)."""

    def __init__(self, dim: int, start: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((dim,), float(start)))

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.weight * x_BND
