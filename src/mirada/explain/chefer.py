"""Relevance of Chefer, Gur and Wolf (2021), for any attention: what a token sees is added to itself.

    Ā^l = mean_h((∂y_c/∂A^l ⊙ A^l)⁺),   R^l = R^{l−1} + Ā^l R^{l−1},   R^0 = I

The positive part is taken before heads are averaged, and rows are not normed. That a token is relevant to itself is
left out of the map: R − I. Across from a target to its source the same sum is taken; the paper's normed form is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mirada.explain.looks import Look
from mirada.explain.walk import Relevance, added, gradient_of, walk


def chefer(looks: Sequence[Look], start_BRN: Tensor) -> Relevance:
    def matrix(look: Look) -> Tensor:
        return (gradient_of(look) * look.weights_BHNM).clamp(min=0).mean(1)

    found, alone = (walk(looks, start_BRN, seen, added) for seen in (matrix, _nothing))
    return Relevance(
        found.values_BRX - alone.values_BRX,
        found.tokens,
        None if found.target_BRN is None or alone.target_BRN is None else found.target_BRN - alone.target_BRN,
    )


def _nothing(look: Look) -> Tensor:
    return torch.zeros_like(look.weights_BHNM[:, 0])
