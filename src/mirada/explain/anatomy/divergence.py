"""How differently heads look (Clark 2019, section 6): the divergence of Jensen and Shannon between their rows.

    J_hg = mean over inputs and queries of  H((p_h + p_g)/2) − (H(p_h) + H(p_g))/2,   H(p) = −Σ_j p_j ln p_j

From 0 (alike) to ln 2 (never at the same key).

Shape letters: T heads of all layers, N queries, M keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mirada.explain.anatomy.entropy import distributions

LARGEST = math.log(2)


def head_divergence(weights_TNM: Tensor) -> Tensor:
    """(T, T) between heads that have the same queries and keys."""
    p_TNM = distributions(weights_TNM)
    entropy_TN = torch.special.entr(p_TNM).sum(-1)
    rows = []
    for p_NM, entropy_N in zip(p_TNM, entropy_TN, strict=True):
        mixed_TN = torch.special.entr((p_TNM + p_NM) / 2).sum(-1)
        rows.append((mixed_TN - (entropy_TN + entropy_N) / 2).double().mean(-1))
    return torch.stack(rows).clamp(0, LARGEST)
