"""What a model of text knows of the senses of words, for the result of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from mirada.tasks.senses import nearest_centroid_accuracy, read_senses, two_axes, vectors_in_context

if TYPE_CHECKING:
    from mirada.verbs.text.prepared import PreparedText

MOST_POINTS = 400


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
        same_ND = torch.zeros_like(vectors_ND)  # a static vector is the same everywhere
        plane_N2 = two_axes(vectors_ND)[:MOST_POINTS]
        told[word] = {
            "accuracy": nearest_centroid_accuracy(vectors_ND, senses),
            "static_accuracy": nearest_centroid_accuracy(same_ND, senses),
            "n": len(own),
            "points": [
                [round(x, 4), round(y, 4), sense] for (x, y), sense in zip(plane_N2.tolist(), senses, strict=False)
            ],
        }
    return {"senses": told}
