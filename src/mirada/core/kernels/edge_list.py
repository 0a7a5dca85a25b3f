"""Any graph by its edges: softmax over the edges that leave a node, one message per edge. Cost O(E).

    α_e = exp(s_e) / Σ_{e′ from the same i} exp(s_e′),     h_i = Σ_{e from i} α_e v_{j(e)}

Shape letters: B batch, H heads, N queries, M keys, E edges, V value dim, R = B·H·V.
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
    nodes, tokens = (
        (call.neighbours.num_queries, call.neighbours.num_keys),
        (call.q_BHNK.shape[-2], call.k_BHMK.shape[-2]),
    )
    if nodes != tokens or not all(places is None or places.is_whole for places in (call.queries, call.keys)):
        return f"the tokens ({tokens[0]} × {tokens[1]}) are not the {nodes[0]} × {nodes[1]} nodes in their order"
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
    raw_BHE = (logits_BHE - highest_BHN.gather(-1, spot_BHE)).exp()
    total_BHN = raw_BHE.new_zeros(highest_BHN.shape).scatter_add(-1, spot_BHE, raw_BHE)
    return raw_BHE / total_BHN.gather(-1, spot_BHE).clamp(min=torch.finfo(raw_BHE.dtype).tiny)


def combine(call: Call, weights_BHE: Tensor) -> Tensor:
    assert isinstance(call.neighbours, Edges)
    i_E, j_E = call.neighbours.edge_2E
    weights_BHE = F.dropout(weights_BHE, call.dropout, training=call.dropout > 0)
    # Nodes first: each edge then moves one contiguous row for all heads, several times faster than a row per head,
    # and the gradient of index_select adds in a fixed order, where that of v[j] does not on several threads.
    batch, num_heads, num_keys, value_dim = call.v_BHMV.shape
    row_MR = call.v_BHMV.permute(2, 0, 1, 3).reshape(num_keys, -1)
    value_EBHV = row_MR.index_select(0, j_E).view(-1, batch, num_heads, value_dim)
    message_ER = (weights_BHE.permute(2, 0, 1)[..., None] * value_EBHV).flatten(1)
    out_NR = message_ER.new_zeros(call.q_BHNK.shape[-2], message_ER.shape[1]).index_add(0, i_E, message_ER)
    return out_NR.view(-1, batch, num_heads, value_dim).permute(1, 2, 0, 3).contiguous()


def run(call: Call) -> Tensor:
    return combine(call, weights(call))
