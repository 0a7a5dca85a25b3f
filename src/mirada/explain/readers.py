"""Which tokens of the last layer give the answer, and how a model's head would read those of an inner layer.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import attention_layers
from mirada.errors import MiradaError
from mirada.explain.legrad import ReadOut
from mirada.explain.looks import Tokens
from mirada.nn import ClassToken, Encoder
from mirada.systems.deit import BothTokens


def readers(model: nn.Module, tokens: Tokens) -> Tensor:
    """(N,) shares that add up to one: of the class token, of both of DeiT's, or of all that are averaged."""
    share_N = torch.zeros(len(tokens))
    if tokens.num_extra:
        num_read = 2 if isinstance(getattr(model, "pooling", None), BothTokens) else 1
        share_N[:num_read] = 1 / num_read
    else:
        share_N[:] = 1 / len(tokens)
    return share_N


def one_reader(tokens: Tokens, at: tuple[int, ...]) -> Tensor:
    """(N,) all of it for the token at this row and column."""
    if (
        not isinstance(at, tuple)
        or len(at) != len(tokens.size)
        or not all(0 <= place < num for place, num in zip(at, tokens.size, strict=True))
    ):
        raise MiradaError(f"no token is at {at}: there are {' × '.join(map(str, tokens.size))}, from 0")
    number = 0
    for place, num in zip(at, tokens.size, strict=True):
        number = number * num + place
    share_N = torch.zeros(len(tokens))
    share_N[tokens.num_extra + number] = 1.0
    return share_N


def inner_layers(model: nn.Module) -> tuple[list[nn.Module], ReadOut]:
    """Layers whose tokens the head can read, and how."""
    encoder, pooling, head = (getattr(model, name, None) for name in ("encoder", "pooling", "head"))
    if not (isinstance(encoder, Encoder) and isinstance(pooling, nn.Module) and isinstance(head, nn.Module)):
        raise MiradaError(
            f"LeGrad lets the head read the tokens of every layer, which that of {type(model).__name__} cannot: layers "
            "differ in their tokens or the answer comes from elsewhere; use gradient_rollout or chefer"
        )
    answer = getattr(model, "answer", head)

    def read_out(z_BND: Tensor) -> Any:
        return answer(pooling(encoder.norm(z_BND)))

    return list(encoder.layers), read_out


def before_the_answer(model: nn.Module) -> nn.Module:
    """The module whose input are the tokens that the answer is last read from: a pooling, or the last attention where
    a class token reads them.
    """
    pooling, encoder = getattr(model, "pooling", None), getattr(model, "encoder", None)
    reads_class_token = isinstance(pooling, ClassToken | BothTokens) or (pooling is None and _num_extra(model) > 0)
    if reads_class_token:
        return _owner(model, attention_layers(model)[-1])
    if isinstance(pooling, nn.Module):
        return pooling
    if isinstance(encoder, Encoder):
        return encoder.norm
    raise MiradaError(f"{type(model).__name__} has no tokens that Grad-CAM is defined for; use chefer")


def _num_extra(model: nn.Module) -> int:
    return int(getattr(model, "num_extra", 0))


def _owner(model: nn.Module, name: str) -> nn.Module:
    """Of an `attend`, the module that makes queries, keys and values of tokens."""
    return model.get_submodule(name.removesuffix(".attend"))
