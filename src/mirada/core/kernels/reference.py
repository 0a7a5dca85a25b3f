"""The explicit form, which serves every combination of parts and which every other kernel is compared with.

    α_ij = exp(s_ij) / Σ_{l ∈ N_i} exp(s_il)  for j ∈ N_i, else 0,     s = score(q, k) + bias
    h_i  = Σ_j mix(α)_ij (v_j + a^V_ij)

Shape letters: B batch, H heads, N queries, M keys, V value dim.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.kernels.call import Call
from mirada.core.neighbours import causal, full


def masked_softmax(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the allowed entries of the last dimension; a row without any gives zeros, not NaN.

    A logit of −∞, which a bias may have brought, is not allowed either.
    """
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -torch.inf)
    if logits.shape[-1] == 0:
        return logits
    nobody = logits.detach().amax(-1, keepdim=True) == -torch.inf
    return logits.masked_fill(nobody, 0.0).softmax(-1).masked_fill(nobody, 0.0)


def whole_bias(call: Call) -> Tensor | None:
    """The bias of all pairs: zero where a token has no place, None if there is no relative position."""
    if call.position is None:
        return None
    queries, keys = call.query_places, call.key_places
    bias = call.position.bias(call.q_BHNK[..., queries.num_extra :, :], queries, keys)
    if not (queries.num_extra or keys.num_extra):
        return bias
    return F.pad(bias, (keys.num_extra, 0, queries.num_extra, 0))


def biased_logits(call: Call) -> Tensor:
    logits, bias = call.score(call.q_BHNK, call.k_BHMK), whole_bias(call)
    return logits if bias is None else logits + bias


def allowed_pairs(call: Call) -> Tensor | None:
    """The neighbourhood and the padding as one mask, None if all is allowed."""
    allowed = None if _sees_all(call) else call.neighbours.allowed(call.query_places, call.key_places)
    if call.valid_BM is None:
        return allowed
    valid = call.valid_BM[:, None, None, :]
    return valid.expand(-1, -1, call.q_BHNK.shape[-2], -1) if allowed is None else allowed & valid


def _sees_all(call: Call) -> bool:
    """Full attention; or the newest of tokens that look back, as when a text is written one by one."""
    if call.neighbours == full():
        return True
    if call.queries is None or call.keys is None or call.neighbours != causal():
        return False
    return call.queries.is_last_of(call.keys)


def weights(call: Call) -> Tensor:
    """What multiplies the values: (B, H, N, M), after mixing, before dropout."""
    allowed = allowed_pairs(call)
    logits_BHNM = biased_logits(call)
    # Looking for rows of −∞ costs as much as the softmax: where nothing can have brought them, it is left out.
    is_open = allowed is None and call.position is None
    weights_BHNM = logits_BHNM.softmax(-1) if is_open else masked_softmax(logits_BHNM, allowed)
    if call.mix is None:
        return weights_BHNM
    # Mixing may shift every entry: who is not a neighbour must stay out.
    mixed_BHNM = call.mix(weights_BHNM)
    return mixed_BHNM if allowed is None else mixed_BHNM.masked_fill(~allowed, 0.0)


def combine(call: Call, weights_BHNM: Tensor) -> Tensor:
    """Σ_j α_ij v_j, with dropout on α."""
    weights_BHNM = F.dropout(weights_BHNM, call.dropout, training=call.dropout > 0)
    out_BHNV = weights_BHNM @ call.v_BHMV
    if call.adds_to_values:
        out_BHNV = out_BHNV + call.position.values(weights_BHNM, call.query_places, call.key_places)  # type: ignore
    return out_BHNV


def run(call: Call) -> Tensor:
    return combine(call, weights(call))


def refuses(call: Call) -> str | None:
    return None
