"""What the answers for some held-out images rest on, and how far the pictures can be trusted.

Shape letters: B batch, R rows and C columns of cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from mirada.explain.chance import beside_chance
from mirada.explain.image import ExplainedImages, explain_images
from mirada.explain.methods import DEFAULT
from mirada.report.attention import Overlay, Shown, overlay
from mirada.report.contents import Contents
from mirada.tasks.image import probabilities_of, saved_task


@dataclass(frozen=True)
class Trust:
    """Areas of the map and of random orders, one for each image shown."""

    insertion_B: np.ndarray
    random_insertion_B: np.ndarray
    deletion_B: np.ndarray
    random_deletion_B: np.ndarray

    @property
    def verdict(self) -> str:
        better = (
            _is_above_chance(self.insertion_B - self.random_insertion_B),
            _is_above_chance(self.random_deletion_B - self.deletion_B),
        )
        if all(better):
            return "Both are better than chance: the answers depend on what is coloured."
        if any(better):
            return "One of them is not clearly better than chance: take the pictures with care."
        return "Neither is clearly better than chance: do not rely on these pictures."


def _is_above_chance(gain_B: np.ndarray) -> bool:
    """Whether the 95 % interval of the mean gain (Student's t) lies above zero."""
    if len(gain_B) < 2:
        return False
    error = gain_B.std(ddof=1) / len(gain_B) ** 0.5
    return bool(gain_B.mean() > stats.t.ppf(0.975, len(gain_B) - 1) * error)


@dataclass(frozen=True)
class RelevancePictures:
    overlays: list[Overlay]
    title: str
    is_not: str
    grid: tuple[int, int]
    trust: Trust | None


def relevance_pictures(run: Contents, images: Shown) -> RelevancePictures:
    """By the default method; raises a MiradaError that says why, where it is not defined for the model."""
    explained = explain_images(images.model.eval(), images.inputs, method=DEFAULT)
    assert explained.cells is not None, "images are no volumes"
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

    found = beside_chance(predict, images.inputs, explained)
    curves = (found.insertion, found.random_insertion, found.deletion, found.random_deletion)
    return Trust(*(curve.area_B.double().numpy() for curve in curves))
