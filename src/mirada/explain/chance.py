"""A map beside random orders: does the answer depend more on what it points at than on anything else?

Maps on different grids are erased by one blur, σ an eighth of the shorter side, so that they can be compared; chance is
the mean over some random orders.

Shape letters: B batch, S steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.erasing import Baseline
from mirada.explain.faithfulness import Curve, Predict, deletion, insertion
from mirada.explain.image import ExplainedImages
from mirada.explain.references import random_map

BASELINE: Baseline = "blur"
NUM_RANDOM = 3


@dataclass(frozen=True)
class BesideChance:
    deletion: Curve
    insertion: Curve
    random_deletion: Curve
    random_insertion: Curve


def sigma_of(images_BCHW: Tensor) -> float:
    return min(images_BCHW.shape[-2:]) / 8


def beside_chance(predict: Predict, images_BCHW: Tensor, explained: ExplainedImages) -> BesideChance:
    """`predict` gives the shares of classes; the maps must be of classes."""
    if explained.target_B is None:
        raise MiradaError("deletion and insertion follow the share of a class, and these maps are of none")
    relevance_BRC = explained.relevance_BRC
    grid = relevance_BRC.shape[1], relevance_BRC.shape[2]
    random = [random_map(len(relevance_BRC), grid, seed=seed).to(relevance_BRC) for seed in range(NUM_RANDOM)]
    given = {"baseline": BASELINE, "cells": explained.cells, "sigma": sigma_of(images_BCHW)}

    def measured(measure, order_BRC: Tensor) -> Curve:
        return measure(predict, images_BCHW, order_BRC, explained.target_B, **given)

    def by_chance(measure) -> Curve:
        curves = [measured(measure, order_BRC) for order_BRC in random]
        return Curve(curves[0].shares_S, torch.stack([curve.scores_BS for curve in curves]).mean(0))

    return BesideChance(
        measured(deletion, relevance_BRC),
        measured(insertion, relevance_BRC),
        by_chance(deletion),
        by_chance(insertion),
    )
