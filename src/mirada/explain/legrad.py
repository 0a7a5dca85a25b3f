"""LeGrad (Bousselham 2025): which tokens, if looked at more, would raise the score as each layer alone would tell it.

    s^l = head(pool(norm(Z^l)))_c,   G^l = ∂s^l/∂A^l,   E_k = mean_l 1/(H N) Σ_h Σ_i (G^l_hik)⁺

Z^l are the tokens after layer l: the head reads them as if no layer came after it. Weights are not multiplied in, and
layers are not chained. Gradients are of the score, not of a share after a softmax.

Shape letters: B batch, H heads, N queries, M keys, D model dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import record
from mirada.errors import MiradaError
from mirada.explain.looks import Tokens
from mirada.explain.seen import outputs_of
from mirada.explain.trace import Score, require_eval, require_gradients
from mirada.explain.walk import Relevance

ReadOut = Callable[[Tensor], Any]  # from tokens (B, N, D) what the model would answer


def legrad(
    model: nn.Module,
    *inputs: Any,
    layers: Sequence[nn.Module],
    read_out: ReadOut,
    score: Score,
    per_layer: bool = False,
) -> Relevance:
    """(B, 1, M), or with `per_layer` (B, L, M): one row for each layer, whose mean is the map."""
    require_eval(model)
    require_gradients()
    with torch.enable_grad():
        with record(model, mode="differentiate") as maps, outputs_of(layers, lambda: len(maps.in_order)) as seen:
            output = model(*inputs)
        score(output)  # what is asked about is what the whole model says, not one of its layers
        rows, tokens = [], None
        for z_BND, num_before in seen:
            look = maps.in_order[num_before - 1]
            found = Tokens.at(look.keys)
            if tokens is not None and found != tokens:
                raise MiradaError(
                    f"{type(model).__name__} has layers with different tokens: its head can't read the inner ones; use "
                    "gradient_rollout or chefer"
                )
            tokens = found
            (gradient_BHNM,) = torch.autograd.grad(
                score(read_out(z_BND)).sum(),
                look.weights,
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
            rows.append(gradient_BHNM.clamp(min=0).mean((1, 2)))
    if tokens is None:
        raise MiradaError(f"none of the {len(layers)} layers of {type(model).__name__} ran on this input")
    values_BLM = torch.stack(rows, dim=1)
    return Relevance(values_BLM if per_layer else values_BLM.mean(1, keepdim=True), tokens)
