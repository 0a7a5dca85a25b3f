"""Tiny systems of text, as they start and with weights that are no longer so, and a text for them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.systems import card, create
from tests.weights import references

TOKENS = 13


def make(system: str, **arguments: object) -> nn.Module:
    torch.manual_seed(7)
    return create(system, **{"num_tokens": TOKENS, **card(system).tiny, **arguments})


def shaken(system: str, **arguments: object) -> nn.Module:
    return references.shaken(make(system, **arguments))


def text(length: int = 11, batch: int = 3) -> Tensor:
    return torch.randint(1, TOKENS, (batch, length), generator=torch.Generator().manual_seed(11))
