"""What the class of a node rests on: a number for every node of the graph.

    attention              α of one layer, from the node to its neighbours
    rollout                Π_l A^l: a layer of a graph attention network has no way around its attention, so no + I
    gradient_attention     mean_l Σ_i mean_h (∂y_c/∂A^l ⊙ A^l)⁺_ik
    integrated_gradients   of the features, from zeros, summed over those of a node

Shape letters: N nodes, D features, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.core import Neighbours
from mirada.errors import MiradaError
from mirada.explain.integrated_gradients import integrated_gradients
from mirada.explain.methods import Method, method_named
from mirada.explain.raw_attention import look_named, raw_attention
from mirada.explain.trace import require_eval, trace
from mirada.explain.walk import gradient_of

KNOWN = ("attention", "rollout", "gradient_attention", "integrated_gradients")


@dataclass(frozen=True)
class ExplainedNode:
    relevance_N: Tensor
    node: int
    target: int
    method: Method


def explain_node(
    model: nn.Module,
    features_ND: Tensor,
    neighbours: Neighbours,
    node: int,
    *,
    method: str = "gradient_attention",
    target: int | None = None,
    layer: int | str = -1,
    head: int | None = None,
) -> ExplainedNode:
    """The score of class `target` (the likeliest, if None) of one node."""
    require_eval(model)
    known = method_named(method)
    if method not in KNOWN:
        raise MiradaError(f"{method} is not defined for nodes of a graph: use one of {', '.join(KNOWN)}")
    if not 0 <= node < len(features_ND):
        raise MiradaError(f"no node has number {node}: there are {len(features_ND)}, from 0")
    with torch.no_grad():
        scores_C = model(features_ND, neighbours)[node]
    chosen = int(scores_C.argmax()) if target is None else target
    if not 0 <= chosen < len(scores_C):
        raise MiradaError(f"target={target}: must be a class from 0 to {len(scores_C) - 1}")
    if method == "integrated_gradients":
        whole_ND = features_ND.to_dense() if features_ND.is_sparse else features_ND
        found_ND = integrated_gradients(
            lambda x_ND: model(x_ND, neighbours)[node, chosen], whole_ND, torch.zeros_like(whole_ND)
        )
        return ExplainedNode(found_ND.sum(-1), node, chosen, known)
    score = (lambda outputs_NC: outputs_NC[node, chosen]) if known.needs_gradient else None
    looks = trace(model, features_ND, neighbours, score=score).looks
    if method == "gradient_attention":
        rows = [(gradient_of(look) * look.weights_BHNM).clamp(min=0).mean(1).sum(1)[0] for look in looks]
        return ExplainedNode(torch.stack(rows).mean(0), node, chosen, known)
    r_11N = nn.functional.one_hot(torch.tensor([[node]], device=features_ND.device), len(features_ND)).float()
    if method == "attention":
        return ExplainedNode(raw_attention(look_named(looks, layer), r_11N, head).values_BRX[0, 0], node, chosen, known)
    for look in reversed(looks):
        r_11N = r_11N @ look.weights_BHNM.mean(1)
    return ExplainedNode(r_11N[0, 0], node, chosen, known)
