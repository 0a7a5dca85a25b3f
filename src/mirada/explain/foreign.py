"""Looks of other people's models, from timm, transformers or plain torch: `looks, output = foreign_looks(model, x)`.

    look.weights_BHNM = α,   look.gradient_BHNM = ∂ Σ_b score_b / ∂α

Samples of a batch do not see each other, so that the gradient of the sum is that of each sample's own score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.capture import Captured, CapturedMap, capture
from mirada.explain.foreign_reading import Rows, logits_of, reading_rows
from mirada.explain.foreign_tokens import Inputs, layout_of, must_be_over_tokens, patches_of
from mirada.explain.looks import Look, Tokens

__all__ = [
    "Captured",
    "CapturedMap",
    "Inputs",
    "Rows",
    "capture",
    "foreign_looks",
    "logits_of",
    "patches_of",
    "reading_rows",
]

Score = Callable[[Any], Tensor]  # what the model returned → one number per sample


def foreign_looks(
    model: nn.Module, inputs: Inputs, score: Score | None = None, *, tokens: Tokens | None = None
) -> tuple[list[Look], Any]:
    """What every layer of attention did on these inputs, in the order of running, and what the model returned.

    inputs   a tensor, or keyword arguments as a tokeniser or an image processor makes them
    score    one number per sample of the model's output, (B,): its gradient is then in every look
    tokens   how the tokens lie, for models that do not tell

    The model runs as in evaluation, and is left as it was found.
    """
    _refuse_two_chains(model)
    with _in_evaluation(model), capture(model, differentiable=score is not None) as captured:
        with torch.set_grad_enabled(score is not None):
            output = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
        maps = captured.maps  # a model without attention is refused for that
        must_be_over_tokens(model, maps)
        layout = layout_of(model, inputs, tokens)
        placed = [(found, *layout.of(found)) for found in maps]
        gradients = [None] * len(placed) if score is None else _gradients(layout.model_class, maps, score(output))
    return [
        Look(
            found.name,
            found.weights_BHNM.detach(),
            queries,
            keys,
            "cross" if found.is_cross or queries != keys else "self",
            gradient,
        )
        for (found, queries, keys), gradient in zip(placed, gradients, strict=True)
    ], output


def _gradients(model_class: str, maps: list[CapturedMap], score_B: Tensor) -> list[Tensor]:
    weights = [found.weights_BHNM for found in maps]
    given = tuple(score_B.shape) if isinstance(score_B, Tensor) else type(score_B).__name__
    if given != (len(weights[0]),):
        raise MiradaError(f"score gave {given}: expected one number for each sample, a tensor of ({len(weights[0])},)")
    found = torch.autograd.grad(score_B.sum(), weights, allow_unused=True) if score_B.requires_grad else []
    if all(gradient is None for gradient in found):
        raise MiradaError(f"score does not depend on any attention of {model_class}: make it of the model's output")
    # A map that the score does not depend on (a pooling that nobody reads) has the gradient zero.
    return [torch.zeros_like(w) if g is None else g for w, g in zip(weights, found, strict=True)]


def _refuse_two_chains(model: nn.Module) -> None:
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "add_cross_attention", False):
        raise MiradaError(
            f"{type(model).__name__} has an encoder and a decoder, so that its attention is no single chain of layers: "
            "explain its encoder alone, or capture its maps by capture(model)"
        )


@contextmanager
def _in_evaluation(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
