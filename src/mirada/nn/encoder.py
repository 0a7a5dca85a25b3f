"""Layers of self-attention and MLP, stacked: encoders, and with causal attention the decoder-only models.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from mirada.nn.residual import Wrap


class EncoderLayer(nn.Module):
    """h = R(attention)(x),  y = R(mlp)(h), with R the kind of residual: `pre_norm(…)` or `post_norm(…)`."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, residual: Wrap) -> None:
        super().__init__()
        self.attention = residual(attention)
        self.mlp = residual(mlp)

    def forward(self, x_BND: Tensor, **context: Any) -> Tensor:
        """`context` is what the attention takes by name: valid_BM (True: a real token), places, neighbours, cache."""
        return self.mlp(self.attention(x_BND, **context))


class Encoder(nn.Module):
    """y = norm(layer_depth(… layer_1(x))). Layers with pre-norm need `norm`; layers with post-norm need none."""

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    def forward(self, x_BND: Tensor, **context: Any) -> Tensor:
        """`context` goes to the attention of every layer."""
        for layer in self.layers:
            x_BND = layer(x_BND, **context)
        return self.norm(x_BND)
