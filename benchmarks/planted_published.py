"""Rollout and gradient rollout as the best-known public implementation has them, with its two long-standing faults.

    M = fuse_h A, or (mean_h(G ⊙ A))⁺, without the smallest 90 % but for its first number
    a = (M + I)/2,   a_ij ← a_ij / Σ_k a_jk        the sum of row j divides column j: no row adds up to one
    R = a^L … a^1,   and in gradient rollout G^l is that of layer L + 1 − l: gradients come in the order of the backward

Only to measure what the faults cost; `mirada.explain` has both methods repaired.

Shape letters: B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mirada.explain.looks import Look
from mirada.explain.readers import readers
from mirada.explain.target import question_of
from mirada.explain.trace import looks_of

DROPPED = 0.9


def published_rollout(model: nn.Module, images_BCHW: Tensor, target_B: Tensor) -> Tensor:
    """(B, rows, columns), with the largest of the heads; the class makes no difference."""
    looks = looks_of(model, images_BCHW)
    return _rolled_out(model, looks, [look.weights_BHNM.amax(1) for look in looks])


def published_gradient_rollout(model: nn.Module, images_BCHW: Tensor, target_B: Tensor) -> Tensor:
    with torch.no_grad():
        question = question_of(model(images_BCHW), target_B)
    looks = looks_of(model, images_BCHW, score=question.score)
    return _rolled_out(model, looks, weighed_in_reverse(looks))


def weighed_in_reverse(looks: Sequence[Look]) -> list[Tensor]:
    """Each layer's weights with the gradient of the layer as far from the other end."""
    gradients = [look.gradient_BHNM for look in reversed(looks)]
    return [
        (look.weights_BHNM * gradient).mean(1).clamp(min=0)
        for look, gradient in zip(looks, gradients, strict=True)
        if gradient is not None
    ]


def column_normalised(fused_BNN: Tensor) -> Tensor:
    """The smallest dropped, the identity added, and columns divided by the sums of rows."""
    flat_BE = fused_BNN.flatten(1)
    smallest_BE = flat_BE.topk(int(flat_BE.shape[1] * DROPPED), largest=False).indices
    first_B1 = flat_BE[:, :1]
    kept_BNN = torch.cat([first_B1, flat_BE.scatter(1, smallest_BE, 0.0)[:, 1:]], dim=1).view_as(fused_BNN)
    a_BNN = (kept_BNN + torch.eye(fused_BNN.shape[-1]).to(fused_BNN)) / 2
    return a_BNN / a_BNN.sum(-1)[:, None, :]


def _rolled_out(model: nn.Module, looks: Sequence[Look], fused: Sequence[Tensor]) -> Tensor:
    tokens = looks[-1].queries
    row_B1N = readers(model, tokens).to(fused[0]).expand(len(fused[0]), 1, -1)
    for fused_BNN in reversed(fused):
        row_B1N = row_B1N @ column_normalised(fused_BNN)
    return row_B1N[:, 0, tokens.num_extra :].unflatten(1, tokens.size)
