"""What the answers for some held-out images rest on, and how far the pictures can be trusted.

Shape letters: B batch, R rows and C columns of cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.cells import Cells
from mirada.explain.faithfulness import deletion, insertion
from mirada.explain.image import ExplainedImages, explain_images
from mirada.explain.methods import DEFAULT
from mirada.explain.references import random_map
from mirada.report.attention import Overlay, Shown, overlay
from mirada.report.contents import Contents
from mirada.tasks.image import probabilities_of, saved_task


@dataclass(frozen=True)
class Trust:
    """Mean areas over the images shown, of the map and of a random order."""

    insertion: float
    random_insertion: float
    deletion: float
    random_deletion: float

    @property
    def verdict(self) -> str:
        better = self.insertion > self.random_insertion, self.deletion < self.random_deletion
        if all(better):
            return "Both are better than chance: the answers depend on what is coloured."
        if any(better):
            return "One of them is no better than chance: take the pictures with care."
        return "Neither is better than chance: do not rely on these pictures."


@dataclass(frozen=True)
class RelevancePictures:
    overlays: list[Overlay]
    title: str
    is_not: str
    grid: tuple[int, int]
    trust: Trust | None


def relevance_pictures(run: Contents, images: Shown) -> RelevancePictures | None:
    """By the default method; None where it is not defined for the model."""
    try:
        explained = explain_images(images.model.eval(), images.inputs, method=DEFAULT)
    except MiradaError:
        return None
    if explained.cells is None:
        return None
    relevance = explained.relevance_BRC.double().numpy()
    overlays = []
    for tile, values in zip(images.tiles, relevance, strict=True):
        low, high = np.percentile(values, [1, 99])  # each image by itself: scores of classes have no common unit
        strength = (values - low) / max(high - low, 1e-12)
        overlays.append(Overlay(tile, overlay(tile.picture, strength, explained.cells.height)))
    rows, columns = relevance.shape[1:]
    method = explained.method
    return RelevancePictures(overlays, method.title, method.is_not, (rows, columns), _trust(run, images, explained))


def _trust(run: Contents, images: Shown, explained: ExplainedImages) -> Trust | None:
    shares = probabilities_of(saved_task(run.data))
    if shares is None or explained.target_B is None:
        return None

    def predict(shown_BCHW: Tensor) -> Tensor:
        with torch.inference_mode():
            return shares(images.model(shown_BCHW).float())

    def area(measure, order: Tensor, cells: Cells | None) -> float:
        curve = measure(predict, images.inputs, order, explained.target_B, baseline="blur", cells=cells)
        return float(curve.area_B.mean())

    relevance = explained.relevance_BRC
    random = random_map(len(relevance), (relevance.shape[1], relevance.shape[2])).to(relevance)
    return Trust(
        *(area(measure, order, explained.cells) for measure in (insertion, deletion) for order in (relevance, random))
    )
