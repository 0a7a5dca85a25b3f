"""Queries, keys and values of distinct prime sizes, and layers in which every parameter counts."""

from __future__ import annotations

import torch
from torch import nn

from mirada.core import Attention, record

B, H, N, M, K, V, D = 2, 3, 5, 7, 11, 13, 17


def qkv(batch=B, heads=H, queries=N, keys=M, dim=K, value_dim=V, dtype=torch.float64):
    shapes = (batch, heads, queries, dim), (batch, heads, keys, dim), (batch, heads, keys, value_dim)
    return tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


def attention(*args, **kwargs) -> Attention:
    """In float64, with biases that are not zero."""
    layer = Attention(*args, **kwargs).double()
    for parameter in layer.parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter)
    return layer


def recorded(model: nn.Module, *args, **kwargs) -> torch.Tensor:
    with record(model) as maps:
        model(*args, **kwargs)
    return maps[0]
