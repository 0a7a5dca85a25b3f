"""torch's scaled_dot_product_attention: no N × M matrix is kept, so no weights to see, mix or add to."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.kernels.call import Call
from mirada.core.kernels.reference import allowed_pairs, whole_bias
from mirada.core.neighbours import causal
from mirada.core.score import DotScore


def refuses(call: Call) -> str | None:
    if not isinstance(call.score, DotScore):
        return f"{type(call.score).__name__} is not a dot product"
    if call.mix is not None:
        return f"{type(call.mix).__name__} mixes the weights"
    if call.adds_to_values:
        return f"{type(call.position).__name__} adds to the values"
    return None


def run(call: Call) -> Tensor:
    assert isinstance(call.score, DotScore)
    q, scale = call.score.as_dot(call.q_BHNK)
    plain = call.position is None and call.valid_BM is None
    if plain and call.neighbours == causal() and call.is_self_attention:
        return F.scaled_dot_product_attention(
            q, call.k_BHMK, call.v_BHMV, is_causal=True, scale=scale, dropout_p=call.dropout
        )
    mask = allowed_pairs(call)
    bias = whole_bias(call)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return masked_sdpa(q, call.k_BHMK, call.v_BHMV, mask, scale, call.dropout)


def see_all(q: Tensor, k: Tensor, v: Tensor, score: DotScore, mask: Tensor | None) -> Tensor:
    """Every query looks at every key, but for a mask (B, M) of keys or (B, N, M) of pairs that all heads have."""
    q, scale = score.as_dot(q)
    if mask is not None:
        mask = (mask[:, None] if mask.dim() == 2 else mask)[:, None].expand(-1, -1, q.shape[2], -1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def masked_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout: float) -> Tensor:
    """SDPA under a boolean mask or a bias with −∞."""
    if mask is not None and mask.is_floating_point():
        mask = mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, dropout_p=dropout)
