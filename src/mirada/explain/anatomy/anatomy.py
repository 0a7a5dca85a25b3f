"""A trained attention model taken apart: what its layers, heads, filters and positions are like.

Shape letters: L layers of attention, H heads, T heads of all layers, F layers with features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from mirada.core.record import attention_layers
from mirada.errors import MiradaError
from mirada.explain.anatomy.between import BetweenTally
from mirada.explain.anatomy.cka import cka_matrix
from mirada.explain.anatomy.distance import Rows
from mirada.explain.anatomy.features import features_of
from mirada.explain.anatomy.filters import Filters, filters_of
from mirada.explain.anatomy.heads import Heads, HeadsTally, labels
from mirada.explain.anatomy.plain import plain
from mirada.explain.anatomy.positions import Positions, positions_of
from mirada.explain.anatomy.runs import Asked, Inputs, looks_of_all

NUM_LOOKED_AT = 64  # inputs whose attention is measured; features are of all
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Alignment:
    """CKA (F, F′) between the layers of one model, or between those of two, on `num_inputs` inputs."""

    layers: tuple[str, ...]
    others: tuple[str, ...]
    cka_FF: np.ndarray
    num_inputs: int


@dataclass(frozen=True)
class Anatomy:
    """All that can be measured; what cannot is None, and `missing` says why in a sentence.

    heads          layer by layer, in the order in which they run
    divergence_TT  Jensen–Shannon divergence between all heads, NaN between those that look at different tokens
    similarity_LL  cosine between the maps of all layers, NaN likewise
    alignment      CKA between what the layers know; `against`: between them and the layers of another model
    """

    unit: str  # of distances
    rows: Rows
    num_inputs: int
    heads: tuple[Heads, ...]
    divergence_TT: np.ndarray
    similarity_LL: np.ndarray
    alignment: Alignment | None
    against: Alignment | None
    filters: Filters | None
    positions: Positions | None
    missing: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Plain lists and numbers, null for what is not defined."""
        written = plain(self)
        assert isinstance(written, dict)
        return written


def anatomy(
    model: nn.Module,
    inputs: Inputs,
    *,
    rows: Rows = "renormalised",
    num_looked_at: int = NUM_LOOKED_AT,
    against: tuple[nn.Module, Inputs] | None = None,
) -> Anatomy:
    """Run the model on inputs and measure what its attention does.

    `inputs` are images (B, C, height, width) as the model takes them, or texts: token numbers (B, N), or a list with
    the tokens of each, or with a pair (source, read) for each. `rows` says how attention to tokens without a place is
    counted in distances. `against` is another model with the same inputs, as that model takes them.
    """
    if not attention_layers(model):
        raise MiradaError(f"{type(model).__name__} has no attention layers, so it has no anatomy to show")
    was_training = model.training
    model.eval()
    try:
        return _taken_apart(model, inputs, rows, num_looked_at, against)
    finally:
        model.train(was_training)


def _taken_apart(
    model: nn.Module, inputs: Inputs, rows: Rows, num_looked_at: int, against: tuple[nn.Module, Inputs] | None
) -> Anatomy:
    asked = Asked.of(inputs, getattr(model, "pad", None))
    looked_at = asked.first(num_looked_at)
    between, names = BetweenTally(), list[str]()
    tallies: list[HeadsTally] = []
    for looks in looks_of_all(model, looked_at):
        if not tallies:
            tallies = [HeadsTally(asked.extent, _patch(model, asked), rows) for _ in looks]
            names = labels(looks)
        for tally, look in zip(tallies, looks, strict=True):
            tally.add(look)
        between.add(looks)
    heads = tuple(tally.result(name) for tally, name in zip(tallies, names, strict=True))

    missing = _missing(heads)
    features = _or_reason(missing, "alignment", lambda: _features(model, asked))
    other = None
    if against is not None:
        other_model, other_inputs = against
        other_asked = Asked.of(other_inputs, getattr(other_model, "pad", None))
        other = _or_reason(missing, "against", lambda: _features(other_model, other_asked))
    own = None if features is None else _or_reason(missing, "alignment", lambda: _alignment(features, None))
    both = None
    if features is not None and other is not None:
        both = _or_reason(missing, "against", lambda: _alignment(features, other))
    return Anatomy(
        "tokens" if asked.images_BC is None else "px",
        rows,
        len(looked_at),
        heads,
        between.divergence_TT(),
        between.similarity_LL(),
        own,
        both,
        _or_reason(missing, "filters", lambda: _filters(model, asked)),
        _or_reason(missing, "positions", lambda: positions_of(model, asked.longest)),
        missing,
    )


def _or_reason(missing: dict[str, str], name: str, measure: Callable[[], Measured]) -> Measured | None:
    try:
        return measure()
    except MiradaError as error:
        missing[name] = f"{str(error).rstrip('.')}."
        return None


def _missing(heads: tuple[Heads, ...]) -> dict[str, str]:
    """Reasons of single layers, in one sentence for each measure."""
    found = {}
    for name in ("distance", "entropy"):
        reasons: dict[str, list[str]] = {}
        for layer in heads:
            if name in layer.missing:
                reasons.setdefault(layer.missing[name], []).append(layer.label)
        if reasons:
            told = "; ".join(f"{reason} (layer {', '.join(which)})" for reason, which in reasons.items())
            found[name] = f"Not defined for {told}."
    return found


def _features(model: nn.Module, asked: Asked) -> dict[str, torch.Tensor]:
    return features_of(model, asked.runs())


def _alignment(features: dict[str, torch.Tensor], other: dict[str, torch.Tensor] | None) -> Alignment:
    others = features if other is None else other
    matrix = cka_matrix(list(features.values()), None if other is None else list(others.values()))
    return Alignment(tuple(features), tuple(others), matrix.numpy(), len(next(iter(features.values()))))


def _filters(model: nn.Module, asked: Asked) -> Filters:
    if asked.images_BC is None:
        raise MiradaError("a text has no pixels, so there are no filters")
    return filters_of(model, asked.images_BC.shape[1])


def _patch(model: nn.Module, asked: Asked) -> tuple[int, ...] | None:
    """Sides of the finest cell that a model's tokens can have."""
    if asked.extent is None:
        return None
    box = getattr(model, "box", None)
    if box is not None:
        return tuple(box)
    side = getattr(model, "patch_size", 1)
    return (side,) * len(asked.extent) if isinstance(side, int) else tuple(side)
