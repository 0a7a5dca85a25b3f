"""Gradient rollout: attention counts as far as more of it would raise the score of the class.

    M^l = (mean_h(∂y_c/∂A^l ⊙ A^l))⁺,   R = normrow(M^L + I) … normrow(M^1 + I)

Heads are averaged before the positive part is taken. Every gradient stands beside the weights of its own layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mirada.explain.looks import Look
from mirada.explain.walk import Relevance, average, gradient_of, walk


def gradient_rollout(looks: Sequence[Look], start_BRN: Tensor) -> Relevance:
    def matrix(look: Look) -> Tensor:
        return (gradient_of(look) * look.weights_BHNM).mean(1).clamp(min=0)

    return walk(looks, start_BRN, matrix, average)
