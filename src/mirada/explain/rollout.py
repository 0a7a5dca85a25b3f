"""Attention rollout (Abnar and Zuidema 2020): how much of each input token is in the answer if layers only averaged.

    Ã^l = normrow(fuse_h A^l + I),   R = Ã^L … Ã^1,   map = the row of R of the token that gives the answer

It does not know the class: it is one map for all of them.

Shape letters: B batch, H heads, R readers, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from mirada.errors import MiradaError, nearest
from mirada.explain.looks import Look
from mirada.explain.walk import Relevance, average, walk

FUSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda weights_BHNM: weights_BHNM.mean(1),
    "max": lambda weights_BHNM: weights_BHNM.amax(1),
    "min": lambda weights_BHNM: weights_BHNM.amin(1),
}


def rollout(looks: Sequence[Look], start_BRN: Tensor, *, fuse: str = "mean", drop: float = 0.0) -> Relevance:
    """`drop` is the share of the smallest weights of each layer that are left out, per image, before rows are normed.

    Weights below zero, as mixed heads may have them, count as zero.
    """
    if fuse not in FUSIONS:
        raise MiradaError(f"fuse={fuse!r}{nearest(fuse, FUSIONS)}: must be one of {', '.join(FUSIONS)}")
    if not 0 <= drop < 1:
        raise MiradaError(f"drop={drop}: must be at least 0 and below 1")

    def matrix(look: Look) -> Tensor:
        fused_BNM = FUSIONS[fuse](look.weights_BHNM.clamp(min=0))
        return _without_smallest(fused_BNM, drop) if drop else fused_BNM

    return walk(looks, start_BRN, matrix, average)


def _without_smallest(matrix_BNM: Tensor, drop: float) -> Tensor:
    flat_BE = matrix_BNM.flatten(1)
    smallest_BE = flat_BE.topk(int(drop * flat_BE.shape[1]), largest=False).indices
    return flat_BE.scatter(1, smallest_BE, 0.0).view_as(matrix_BNM)
