"""Gradient times attention, layer by layer: what each layer looks at, as far as more of it would raise the score.

    E_k = mean_l Σ_i mean_h (∂y_c/∂A^l ⊙ A^l)⁺_ik

The gradient is that of the last score in every layer, as in Chefer's relevance; but layers are added, not chained.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mirada.explain.carry import carried
from mirada.explain.looks import Look, Tokens
from mirada.explain.walk import Relevance, bottom, gradient_of, require_chain


def gradient_attention(looks: Sequence[Look], start_BRN: Tensor) -> Relevance:
    """Who gives the answer is no matter: every query counts by its gradient."""
    require_chain(looks, start_BRN)
    own = [look for look in looks if look.kind == "self"]
    across = [look for look in looks if look.kind == "cross"]
    below = bottom((own or across)[0])
    values = [_carried_down(look, own[:number], below) for number, look in enumerate(own)]
    values += [_carried_down(look, own, below) for look in across]
    return Relevance(torch.stack(values).mean(0), below)


def _carried_down(look: Look, before: Sequence[Look], below: Tokens) -> Tensor:
    """(B, 1, X)"""
    row_B1M = (gradient_of(look) * look.weights_BHNM).clamp(min=0).mean(1).sum(1, keepdim=True)
    tokens = look.keys
    for lower in [*(earlier.queries for earlier in reversed(before)), below]:
        row_B1M, tokens = carried(row_B1M, tokens, lower), lower
    return row_B1M
