"""Grad-CAM on tokens: channels weighed by how much more of them would raise the score.

    Grad-CAM    w_d = mean_k ∂y_c/∂X_kd,   map_k = (Σ_d w_d X_kd)⁺     (Selvaraju 2017)
    LayerCAM    map_k = (Σ_d (∂y_c/∂X_kd)⁺ X_kd)⁺                       (Jiang 2021)

X are the tokens that the answer is last read from: those that the last attention sees where a class token reads them
(after it they have no gradient), else those that are pooled.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import record
from mirada.errors import MiradaError
from mirada.explain.looks import Tokens
from mirada.explain.seen import input_of
from mirada.explain.trace import Score, require_eval, require_gradients
from mirada.explain.walk import Relevance


def grad_cam(model: nn.Module, *inputs: Any, module: nn.Module, score: Score) -> Relevance:
    """`module` is the one whose input are these tokens."""
    x_BND, gradient_BND, tokens = _tokens_and_gradient(model, inputs, module, score)
    weight_BD = gradient_BND[:, tokens.num_extra :].mean(1)
    return Relevance((x_BND @ weight_BD[..., None]).mT.clamp(min=0), tokens)


def layer_cam(model: nn.Module, *inputs: Any, module: nn.Module, score: Score) -> Relevance:
    x_BND, gradient_BND, tokens = _tokens_and_gradient(model, inputs, module, score)
    return Relevance((gradient_BND.clamp(min=0) * x_BND).sum(-1)[:, None].clamp(min=0), tokens)


def _tokens_and_gradient(
    model: nn.Module, inputs: tuple, module: nn.Module, score: Score
) -> tuple[Tensor, Tensor, Tokens]:
    require_eval(model)
    require_gradients()
    # One row of weights is recorded for the places of the tokens; the kernels run as always.
    with torch.enable_grad(), record(model, queries=[0]) as maps, input_of(module) as seen:
        # A model whose parameters are frozen has a gradient from its input on.
        floating = [x.detach().requires_grad_() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
        score_B = score(model(*floating))
        if len(seen) != 1 or seen[0].ndim != 3:
            raise MiradaError(
                f"Grad-CAM wants the tokens of {type(module).__name__} once, and it ran {len(seen)} times on "
                f"{[tuple(x.shape) for x in seen]}; use chefer"
            )
        (gradient_BND,) = torch.autograd.grad(score_B.sum(), seen, allow_unused=True, materialize_grads=True)
    looking = [Tokens.at(recorded.queries) for recorded in maps.in_order]
    tokens = next((found for found in reversed(looking) if len(found) == seen[0].shape[1]), None)
    if tokens is None:
        raise MiradaError(
            f"where the {seen[0].shape[1]} tokens of {type(module).__name__} lie is not known; use chefer"
        )
    return seen[0].detach(), gradient_BND, tokens
