"""Every method on the same images and classes: does it point at the object, does the answer depend on it, its cost.

Shape letters: B pairs of an image and a class, R rows and C columns of cells (of images: channels), H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.planted_published import published_gradient_rollout, published_rollout
from benchmarks.timing import interleave, speed_up
from mirada.explain.cells import Cells
from mirada.explain.faithfulness import IsPredicted, Predict, faithfulness
from mirada.explain.image import explain_images
from mirada.explain.localisation import localisation, oracle
from mirada.explain.methods import METHODS
from mirada.explain.references import centre_map, random_map
from mirada.explain.sanity import sanity

Explain = Callable[[nn.Module, Tensor, Tensor], Tensor]  # model, images, classes → relevance (B, R, C)
PUBLISHED: dict[str, Explain] = {
    "published_rollout": published_rollout,
    "published_gradient_rollout": published_gradient_rollout,
}
REFERENCES = ("random", "centre", "oracle")
AT_ONCE = 60  # images explained at a time
FORWARD = "forward"


@dataclass(frozen=True)
class Pairs:
    """Normalised images, the class of each that is explained, and where that class is."""

    images_BCHW: Tensor
    target_B: Tensor
    mask_BHW: Tensor
    is_shared_B: Tensor  # the image has an object of another class, too


@dataclass(frozen=True)
class Asked:
    """A model and how its answers are read."""

    model: nn.Module
    predict: Predict
    is_predicted: IsPredicted
    black_C: tuple[float, ...]


def explainers() -> dict[str, Explain]:
    return {**{name: partial(_by_method, name) for name in METHODS}, **PUBLISHED}


def measure(asked: Asked, pairs: Pairs) -> dict[str, dict[str, float]]:
    """All numbers of all methods and references but the cost."""
    cells = explain_images(asked.model, pairs.images_BCHW[:1], method="rollout").cells
    assert cells is not None
    batch, grid = len(pairs.target_B), (cells.rows, cells.columns)
    fixed = {
        "random": random_map(batch, grid),
        "centre": centre_map(batch, grid),
        "oracle": oracle(pairs.mask_BHW, cells),
    }
    found = {name: _judged(asked, pairs, cells, relevance_BRC) for name, relevance_BRC in fixed.items()}
    for name, explain in explainers().items():
        make_map = partial(_in_batches, explain, pairs)
        found[name] = _judged(asked, pairs, cells, make_map(asked.model))
        found[name]["sanity"] = sanity(make_map, asked.model).final_B.mean().item()
    return found


def costs(model: nn.Module, pairs: Pairs, batch: int, rounds: int) -> dict[str, list[float]]:
    """Of each method in plain forwards of the same batch, in turns: median of the paired ratios and their quartiles."""
    images_BCHW, target_B = pairs.images_BCHW[:batch], pairs.target_B[:batch]

    def forward() -> None:
        with torch.inference_mode():
            model(images_BCHW)

    candidates: dict[str, Callable[[], object]] = {FORWARD: forward}
    for name in METHODS:
        candidates[name] = partial(_by_method, name, model, images_BCHW, target_B)
    taken = interleave(candidates, rounds)
    ratios = {name: speed_up(taken[FORWARD], taken[name]) for name in METHODS}
    return {name: [ratio.median, ratio.low, ratio.high] for name, ratio in ratios.items()}


def _judged(asked: Asked, pairs: Pairs, cells: Cells, relevance_BRC: Tensor) -> dict[str, float]:
    where = localisation(relevance_BRC, pairs.mask_BHW, cells=cells)
    depends = faithfulness(
        asked.predict,
        pairs.images_BCHW,
        relevance_BRC,
        pairs.target_B,
        baseline="blur",
        black_C=asked.black_C,
        is_predicted=asked.is_predicted,
        cells=cells,
    )
    shared = {"pointing_shared": where.pointing_B[pairs.is_shared_B].mean().item()} if pairs.is_shared_B.any() else {}
    return {
        "pointing": where.pointing_B.mean().item(),
        **shared,
        "energy": where.energy_B.mean().item(),
        "precision": where.precision_B.mean().item(),
        "mean_iou": where.mean_iou,
        "deletion": depends.deletion.area_B.mean().item(),
        "insertion": depends.insertion.area_B.mean().item(),
        "positive": depends.positive.mean_B.mean().item(),
        "negative": depends.negative.mean_B.mean().item(),
    }


def _by_method(name: str, model: nn.Module, images_BCHW: Tensor, target_B: Tensor) -> Tensor:
    return explain_images(model, images_BCHW, method=name, target=target_B).relevance_BRC


def _in_batches(explain: Explain, pairs: Pairs, model: nn.Module) -> Tensor:
    batches = zip(pairs.images_BCHW.split(AT_ONCE), pairs.target_B.split(AT_ONCE), strict=True)
    return torch.cat([explain(model, images_BCHW, target_B) for images_BCHW, target_B in batches])
