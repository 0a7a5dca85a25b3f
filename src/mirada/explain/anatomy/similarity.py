"""How alike the maps of different layers are: deep layers of a plain ViT collapse into one (Zhou 2021, eq. 2).

    S_lm = mean over inputs, heads h and keys j of  cos(A^l_h[:, j], A^m_h[:, j])

A column A[:, j] says how much token j gives to each query. Heads are compared with those of the same number. Two even
maps have S = 1, so a high S in maps that are nearly uniform says little; the entropies tell.

Shape letters: L layers, B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

import torch
from torch import Tensor


def map_similarity(weights_LBHNM: Tensor) -> Tensor:
    """(L, L) between layers that have the same heads, queries and keys; keys that nobody looks at are left out."""
    length_LBHM = weights_LBHNM.norm(dim=-2)
    is_looked_at_LK = (length_LBHM > 0).flatten(1).double()
    unit_LBHNM = weights_LBHNM / length_LBHM.clamp(min=torch.finfo(length_LBHM.dtype).tiny)[..., None, :]
    columns_LX = unit_LBHNM.flatten(1).double()
    return (columns_LX @ columns_LX.T) / (is_looked_at_LK @ is_looked_at_LK.T)
