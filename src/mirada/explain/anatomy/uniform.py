"""What every measure is held against: attention that is spread evenly over the keys that a query can see.

    u_ij = 1/|N_i|  for j ∈ N_i,  0 elsewhere

A head of a causal, windowed or masked layer is compared with what it could do, not with the whole grid.

Shape letters: B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from mirada.explain.looks import Look


def seen(weights_BHNM: Tensor) -> Tensor:
    """(N, M): True where any head looked on any input. A softmax is zero only where looking was not allowed."""
    return (weights_BHNM != 0).flatten(0, 1).any(0)


def uniform(look: Look) -> Look:
    """The same layer, looking evenly at all that it can see: one input, one head."""
    seen_NM = seen(look.weights_BHNM).double()
    even_NM = seen_NM / seen_NM.sum(-1, keepdim=True).clamp(min=1)
    return replace(look, weights_BHNM=even_NM[None, None], gradient_BHNM=None)


def are_distributions(weights_BHNM: Tensor) -> bool:
    """No weight is below zero and rows sum to one; re-attention, which norms the maps of a batch, is not like that."""
    off_BHN = weights_BHNM.sum(-1) - 1
    return bool((weights_BHNM >= -1e-6).all() and (off_BHN.abs() < 1e-2).all())
