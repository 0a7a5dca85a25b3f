"""Any graph by its edges: softmax over the edges that leave a node, one message per edge. Cost O(E).

    α_e = exp(s_e) / Σ_{e′ from the same i} exp(s_e′),     h_i = Σ_{e from i} α_e v_{j(e)}

Shape letters: B batch, H heads, N queries, M keys, E edges, V value dim.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.kernels.call import Call
from mirada.core.neighbours import Edges


def refuses(call: Call) -> str | None:
    if not isinstance(call.neighbours, Edges):
        return "the neighbourhood is not a list of edges"
    if call.position is not None:
        return f"{type(call.position).__name__} needs the whole matrix"
    if call.mix is not None:
        return f"{type(call.mix).__name__} mixes the weights of whole rows"
    return None


def weights(call: Call) -> Tensor:
    """One weight per edge: (B, H, E), in the order of `neighbours.edge_2E`."""
    assert isinstance(call.neighbours, Edges)
    i_E, j_E = call.neighbours.edge_2E
    logits_BHE = call.score.pairs(call.q_BHNK, call.k_BHMK, i_E, j_E)
    if call.valid_BM is not None:
        logits_BHE = logits_BHE.masked_fill(~call.valid_BM[:, None, j_E], -torch.inf)
    num_queries = call.q_BHNK.shape[-2]
    spot_BHE = i_E.expand(logits_BHE.shape)
    highest_BHN = logits_BHE.new_full((*logits_BHE.shape[:-1], num_queries), -torch.inf)
    highest_BHN = highest_BHN.scatter_reduce(-1, spot_BHE, logits_BHE.detach(), "amax")
    # A node all of whose neighbours are padding has highest −∞: its edges get weight 0 below.
    highest_BHN = highest_BHN.clamp(min=torch.finfo(logits_BHE.dtype).min)
    raw_BHE = (logits_BHE - highest_BHN[..., i_E]).exp()
    total_BHN = raw_BHE.new_zeros(highest_BHN.shape).scatter_add(-1, spot_BHE, raw_BHE)
    return raw_BHE / total_BHN[..., i_E].clamp(min=torch.finfo(raw_BHE.dtype).tiny)


def combine(call: Call, weights_BHE: Tensor) -> Tensor:
    assert isinstance(call.neighbours, Edges)
    i_E, j_E = call.neighbours.edge_2E
    weights_BHE = F.dropout(weights_BHE, call.dropout, training=call.dropout > 0)
    message_BHEV = weights_BHE[..., None] * call.v_BHMV[..., j_E, :]
    out_BHNV = message_BHEV.new_zeros(*call.q_BHNK.shape[:-1], call.v_BHMV.shape[-1])
    return out_BHNV.index_add(2, i_E, message_BHEV)


def run(call: Call) -> Tensor:
    return combine(call, weights(call))
