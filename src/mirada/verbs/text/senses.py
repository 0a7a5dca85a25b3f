"""What a model of text knows of the senses of words, for the result of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from mirada.errors import MiradaError
from mirada.tasks.senses import (
    largest_share,
    located,
    nearest_centroid_accuracy,
    read_senses,
    two_axes,
    vectors_in_context,
)

if TYPE_CHECKING:
    from mirada.verbs.text.prepared import PreparedText

MOST_POINTS = 400


def require_senses(prepared: PreparedText) -> None:
    """The file can be used, which would be too late to find out when the training is done."""
    if prepared.text.senses is None:
        return
    for each in read_senses(prepared.text.senses):
        tokens, _ = located(each, prepared.tokeniser)
        if len(tokens) + 2 > prepared.text.max_length:
            raise MiradaError(
                f"text.senses {prepared.text.senses}: {each.sentence[:40]!r}… has {len(tokens)} tokens, but only "
                f"{prepared.text.max_length - 2} fit into text.max_length={prepared.text.max_length}."
            )


def sense_results(prepared: PreparedText, model: nn.Module, device: torch.device) -> dict:
    """Per word: how often its vector in context, and its static one, is nearest to the right sense."""
    if prepared.text.senses is None:
        return {}
    occurrences = read_senses(prepared.text.senses)
    told = {}
    for word in dict.fromkeys(each.word for each in occurrences):
        own = [each for each in occurrences if each.word == word]
        senses = [each.sense for each in own]
        vectors_ND = vectors_in_context(model, prepared.tokeniser, own, device)
        plane_N2 = two_axes(vectors_ND)[:MOST_POINTS]
        told[word] = {
            "accuracy": nearest_centroid_accuracy(vectors_ND, senses),
            "static_accuracy": largest_share(senses),
            "n": len(own),
            "points": [
                [round(x, 4), round(y, 4), sense] for (x, y), sense in zip(plane_N2.tolist(), senses, strict=False)
            ],
        }
    return {"senses": told}
