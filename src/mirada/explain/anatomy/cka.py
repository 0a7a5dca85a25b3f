"""How alike what two layers know is: linear centred kernel alignment (Kornblith 2019), without its bias.

    CKA(X, Y) = ⟨K̃, L̃⟩ / √(⟨K̃, K̃⟩ ⟨L̃, L̃⟩),   K = X Xᵀ, L = Y Yᵀ
    K̃_ij = K_ij − (Σ_k K_ik + Σ_k K_kj)/(n−2) + Σ_kl K_kl/((n−1)(n−2))  for i ≠ j, K_ii and K̃_ii being 0

⟨K̃, L̃⟩/(n(n−3)) is the unbiased HSIC (Song 2012), as Nguyen 2021 and Raghu 2021 use it: with the biased one, n = 400
inputs and 128 unrelated channels would seem 0.24 alike. 1 for X with itself, whatever rotation and scale; about 0 for
what is unrelated, at times a little below. Computed on all inputs at once, not on batches.

Shape letters: n inputs, D channels, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mirada.errors import MiradaError

FEWEST = 4  # below, the estimate is not defined


def linear_cka(x_nD: Tensor, y_nD: Tensor) -> float:
    """Of two layers on the same inputs, in the same order; their widths may differ."""
    return float(cka_matrix([x_nD], [y_nD])[0, 0])


def cka_matrix(one: Sequence[Tensor], other: Sequence[Tensor] | None = None) -> Tensor:
    """(L, L) of all pairs of layers of one model, or (L, L′) with those of another; NaN where a layer is constant."""
    own_LK = torch.stack([_direction(x_nD) for x_nD in one])
    others_LK = own_LK if other is None else torch.stack([_direction(x_nD) for x_nD in other])
    if own_LK.shape[1] != others_LK.shape[1]:
        counts = f"{len(one[0])} inputs were given to one model and {len((other or one)[0])} to the other"
        raise MiradaError(f"{counts}: give the same to both")
    return own_LK @ others_LK.T


def _direction(x_nD: Tensor) -> Tensor:
    """K̃ as one long vector of length 1."""
    n = len(x_nD)
    if n < FEWEST:
        raise MiradaError(f"{n} inputs are too few to compare layers by CKA: give at least {FEWEST}")
    x_nD = x_nD.double()
    x_nD = x_nD - x_nD.mean(0)  # changes nothing but the rounding
    K = (x_nD @ x_nD.T).fill_diagonal_(0)
    rows_n = K.sum(1)
    K = K - (rows_n[:, None] + rows_n) / (n - 2) + rows_n.sum() / ((n - 1) * (n - 2))
    vector = K.fill_diagonal_(0).flatten()
    return vector / vector.norm()
