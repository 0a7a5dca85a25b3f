"""One run of a model of ours, and what its attention did in it.

Shape letters: B batch, H heads, N queries, M keys, E edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import Places, record
from mirada.core.record import Maps, Recorded
from mirada.errors import MiradaError
from mirada.explain.looks import Kind, Look, Tokens
from mirada.nn.decoder import Decoder
from mirada.nn.recurrent import BahdanauDecoder, LuongDecoder

MAX_DENSE = 2**26  # weights of a graph written as a matrix
Score = Callable[[Any], Tensor]  # from the outputs of a model, the number to explain, one per sample


@dataclass(frozen=True)
class Trace:
    looks: list[Look]
    output: Any
    score_B: Tensor | None = None


def looks_of(model: nn.Module, *inputs: Any, score: Score | None = None) -> list[Look]:
    """The looks of all layers, in the order in which they ran; with a `score`, its gradients too."""
    return trace(model, *inputs, score=score).looks


def trace(
    model: nn.Module, *inputs: Any, score: Score | None = None, layers: Sequence[str | int] | None = None
) -> Trace:
    """Run model(*inputs) once. Without a `score` outputs are those of a plain run, to the bit.

    `layers` are those whose looks are wanted, by name or number: without a `score` only their weights are in memory.
    """
    require_eval(model)
    if score is not None:
        require_gradients()
    if score is None:
        with torch.inference_mode(), record(model, layers) as maps:
            output = model(*inputs)
        return Trace(_looks(model, maps), output)
    with torch.enable_grad(), record(model, layers, mode="differentiate") as maps:
        output = model(*inputs)
        score_B = score(output)
        weights = [recorded.weights for recorded in maps.in_order]
        # A layer that the score does not depend on (tokens after the one that is asked about) has no gradient.
        gradients = torch.autograd.grad(score_B.sum(), weights, materialize_grads=True, allow_unused=True)
    looks = [
        replace(look, weights_BHNM=look.weights_BHNM.detach(), gradient_BHNM=_matrix(recorded, gradient))
        for look, recorded, gradient in zip(_looks(model, maps), maps.in_order, gradients, strict=True)
    ]
    return Trace(looks, output, score_B.detach())


def require_eval(model: nn.Module) -> None:
    if model.training:
        raise MiradaError(
            f"{type(model).__name__} is in training mode, where dropout makes every run another one: call model.eval()"
        )


def require_gradients() -> None:
    """Inside torch.inference_mode() there are none to be had."""
    if torch.is_inference_mode_enabled():
        raise MiradaError("torch.inference_mode() is on, and this method needs gradients: call it outside")


def _looks(model: nn.Module, maps: Maps) -> list[Look]:
    if not maps.in_order:
        raise MiradaError(f"no attention layer of {type(model).__name__} ran on this input")
    kinds = _kinds(model)
    return [
        Look(
            recorded.name,
            _matrix(recorded, recorded.weights),
            Tokens.at(recorded.queries),
            Tokens.at(recorded.keys),
            kinds(recorded.name),
        )
        for recorded in maps.in_order
    ]


def _kinds(model: nn.Module) -> Callable[[str], Kind]:
    decoders = [name for name, module in model.named_modules() if isinstance(module, Decoder)]
    recurrent = [name for name, module in model.named_modules() if isinstance(module, BahdanauDecoder | LuongDecoder)]

    def kind(name: str) -> Kind:
        if any(name.startswith(f"{decoder}.") for decoder in recurrent):
            return "cross"
        if any(name.startswith(f"{decoder}.") for decoder in decoders):
            return "cross" if ".cross." in name else "target"
        return "self"

    return kind


def _matrix(recorded: Recorded, weights: Tensor) -> Tensor:
    """(B, H, N, M), also where there is one weight per edge; without padding."""
    if recorded.edge_2E is None:
        for dim, places in ((2, recorded.queries), (3, recorded.keys)):
            if places.unpadded is not None:
                weights = weights.index_select(dim, _real(places))
        return weights
    size = len(recorded.queries), len(recorded.keys)
    if weights.shape[0] * weights.shape[1] * size[0] * size[1] > MAX_DENSE:
        raise MiradaError(
            f"{recorded.name} has {size[0]} nodes, too many for a matrix of who looks at whom: explain a part"
        )
    i_E, j_E = recorded.edge_2E
    flat_BHE = weights.new_zeros(*weights.shape[:2], size[0] * size[1])
    spot_E = (i_E * size[1] + j_E).expand(weights.shape)
    return flat_BHE.scatter_add(-1, spot_E, weights).unflatten(-1, size)


def _real(places: Places) -> Tensor:
    """The rows of tokens that are no padding."""
    assert places.unpadded is not None
    inside_N = (places.coords_NA < torch.tensor(places.unpadded, device=places.coords_NA.device)).all(-1)
    extra = torch.arange(places.num_extra, device=inside_N.device)
    return torch.cat([extra, places.num_extra + inside_N.nonzero()[:, 0]])
