"""Scores that are a product of features: the keys are summed up once, for all queries. Cost O((N + M) · Z · V).

    h_i = φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j)        (Performer, Choromanski 2021, section 2.2)

Shape letters: B batch, H heads, N queries, M keys, K head dim, V value dim, Z features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core.kernels.call import Call
from mirada.core.neighbours import full
from mirada.core.score import RandomFeatures


def refuses(call: Call) -> str | None:
    if not isinstance(call.score, RandomFeatures):
        return f"{type(call.score).__name__} is not a product of features"
    if call.neighbours != full():
        return "only where all look at all is one sum over the keys enough"
    if call.position is not None:
        return f"{type(call.position).__name__} needs the whole matrix"
    if call.mix is not None:
        return f"{type(call.mix).__name__} mixes the weights"
    if call.dropout:
        return "dropout falls on single weights, which are never computed here"
    return None


def run(call: Call) -> Tensor:
    assert isinstance(call.score, RandomFeatures)
    # Exponentials and long sums: half precision would lose the small ones.
    dtype = torch.promote_types(call.q_BHNK.dtype, torch.float32)
    q, k, v = (x.to(dtype) for x in (call.q_BHNK, call.k_BHMK, call.v_BHMV))
    log_k_BHMZ = call.score.log_features(k)
    if call.valid_BM is not None:
        log_k_BHMZ = log_k_BHMZ.masked_fill(~call.valid_BM[:, None, :, None], -torch.inf)
    # What is taken out of a feature of all keys is put into that of the queries; what is taken out of a query cancels.
    # So the best feature of every query is 1 and meets a sum of at least 1: the division is safe.
    top_k_BH1Z = log_k_BHMZ.detach().amax(-2, keepdim=True)
    top_k_BH1Z = top_k_BH1Z.masked_fill(top_k_BH1Z == -torch.inf, 0.0)  # all keys are padding
    log_q_BHNZ = call.score.log_features(q) + top_k_BH1Z
    feature_k_BHMZ = (log_k_BHMZ - top_k_BH1Z).exp()
    feature_q_BHNZ = (log_q_BHNZ - log_q_BHNZ.detach().amax(-1, keepdim=True)).exp()
    total_BHN1 = feature_q_BHNZ @ feature_k_BHMZ.sum(-2)[..., None]
    out_BHNV = feature_q_BHNZ @ (feature_k_BHMZ.mT @ v) / total_BHN1.masked_fill(total_BHN1 == 0, 1.0)
    return out_BHNV.to(call.v_BHMV.dtype)
