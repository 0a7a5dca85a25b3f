"""A system without its weights: whether it can be built, and how large it would be."""

from __future__ import annotations

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from mirada.systems.registry import create

FILLS = {torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.erfinv_}


def outline(name: str, size: str | None = None, **arguments: object) -> nn.Module:
    """The system with its large weights on the meta device, where they need neither memory nor time."""
    with Unfilled():
        return create(name, size, **arguments)


class Unfilled(TorchFunctionMode):
    """torch.empty is on the meta device and is not filled with starting weights.

    `torch.device("meta")` would send everything there, for which torch loads half of its compiler (six seconds).
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.empty and kwargs.get("device") is None:
            return func(*args, **kwargs | {"device": "meta"})
        return args[0] if func in FILLS else func(*args, **kwargs)
