"""How widely a head looks (Clark 2019, section 3.3).

    e_h = mean over inputs and queries i of  −Σ_j p_ij ln p_ij,   p_ij = α_ij / Σ_k α_ik        in nats

From 0 (one key) to ln M (all M keys alike). Extra tokens count, as queries and as keys.

Shape letters: B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mean_entropy(weights_BHNM: Tensor) -> Tensor:
    """(B, H)"""
    return torch.special.entr(distributions(weights_BHNM)).sum(-1).double().mean(-1)


def distributions(weights_BHNM: Tensor) -> Tensor:
    """Rows that sum to one: those of kernel features, for example, need not by themselves."""
    return weights_BHNM / weights_BHNM.sum(-1, keepdim=True)
