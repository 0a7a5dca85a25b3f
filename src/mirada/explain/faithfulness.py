"""Does the model's answer depend on what a map points at? Patches are taken away, or shown, in the order of relevance.

    deletion    p_c of the image without its most relevant patches, t = 0 … all of them         low area is better
    insertion   p_c of an erased image with its most relevant patches put back                  high area is better
    area        ∫ p_c dt over the share t of patches, by trapezoids: (Σ p − (p_first + p_last)/2) / (n − 1)
    positive    is c still predicted without the most relevant 10, 20, … 90 % of the patches?   low mean is better
    negative    … without the least relevant ones?                                              high mean is better

Deletion and insertion: RISE (Petsiuk 2018); positive and negative perturbation: Chefer 2021. Order: by falling
relevance, equal ones in raster order; negative perturbation takes exactly the reverse. Patches are taken whole, as that
is what these models see; without `cells` the patches share the image. `predict` gives probabilities (B, L) of
normalised images (B, C, H, W).

Shape letters: B batch, S steps, R rows and C columns of patches (of images: channels), H and W pixels, L classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.cells import Cells
from mirada.explain.erasing import Baseline, erased
from mirada.explain.references import cells_for, require_maps

Predict = Callable[[Tensor], Tensor]  # images (B, C, H, W) → probabilities (B, L)
IsPredicted = Callable[[Tensor, Tensor], Tensor]  # probabilities (B, L), classes (B,) → (B,) true or false

MASKED = tuple(tenth / 10 for tenth in range(1, 10))
STEPS = 16  # if not said otherwise


@dataclass(frozen=True)
class Curve:
    """One number per image at each share of patches that were taken away or put back."""

    shares_S: Tensor
    scores_BS: Tensor

    @property
    def area_B(self) -> Tensor:
        return torch.trapezoid(self.scores_BS, self.shares_S) / (self.shares_S[-1] - self.shares_S[0])

    @property
    def mean_B(self) -> Tensor:
        return self.scores_BS.mean(1)


@dataclass(frozen=True)
class Faithfulness:
    """All four, of one batch; the first two with `baseline`, the last two with black patches."""

    baseline: Baseline
    deletion: Curve
    insertion: Curve
    positive: Curve
    negative: Curve


def faithfulness(
    predict: Predict,
    images_BCHW: Tensor,
    relevance_BRC: Tensor,
    target_B: Tensor,
    *,
    baseline: Baseline,
    black_C: Sequence[float],
    is_predicted: IsPredicted,
    cells: Cells | None = None,
    patches_per_step: int | None = None,
) -> Faithfulness:
    """All of it; see the functions below for each."""
    given = (predict, images_BCHW, relevance_BRC, target_B)
    deleted, inserted = (
        measure(*given, baseline=baseline, black_C=black_C, cells=cells, patches_per_step=patches_per_step)
        for measure in (deletion, insertion)
    )
    positive, negative = perturbation(*given, black_C=black_C, is_predicted=is_predicted, cells=cells)
    return Faithfulness(baseline, deleted, inserted, positive, negative)


def deletion(
    predict: Predict,
    images_BCHW: Tensor,
    relevance_BRC: Tensor,
    target_B: Tensor,
    *,
    baseline: Baseline,
    black_C: Sequence[float] | None = None,
    cells: Cells | None = None,
    patches_per_step: int | None = None,
    sigma: float | None = None,
) -> Curve:
    """From the image to nothing. Without `patches_per_step`, a sixteenth of the patches at a time, rounded up.

    Maps on different grids are comparable with one `sigma` of the blur, in pixels, for all; without, it is a patch.
    """
    rank_BRC = ranks(relevance_BRC, len(images_BCHW))
    blank_BCHW = _blank(images_BCHW, rank_BRC, baseline, black_C, cells, sigma)
    score = _probability_of(predict, target_B)
    return _curve(score, images_BCHW, blank_BCHW, rank_BRC, _steps(rank_BRC, patches_per_step), cells)


def insertion(
    predict: Predict,
    images_BCHW: Tensor,
    relevance_BRC: Tensor,
    target_B: Tensor,
    *,
    baseline: Baseline,
    black_C: Sequence[float] | None = None,
    cells: Cells | None = None,
    patches_per_step: int | None = None,
    sigma: float | None = None,
) -> Curve:
    """From nothing to the image, in the steps of `deletion`."""
    rank_BRC = ranks(relevance_BRC, len(images_BCHW))
    blank_BCHW = _blank(images_BCHW, rank_BRC, baseline, black_C, cells, sigma)
    score = _probability_of(predict, target_B)
    return _curve(score, blank_BCHW, images_BCHW, rank_BRC, _steps(rank_BRC, patches_per_step), cells)


def perturbation(
    predict: Predict,
    images_BCHW: Tensor,
    relevance_BRC: Tensor,
    target_B: Tensor,
    *,
    black_C: Sequence[float],
    is_predicted: IsPredicted,
    cells: Cells | None = None,
) -> tuple[Curve, Curve]:
    """(positive, negative): 1 where the class is still predicted under black patches, else 0."""
    rank_BRC = ranks(relevance_BRC, len(images_BCHW))
    blank_BCHW = _blank(images_BCHW, rank_BRC, "black", black_C, cells)
    num_patches = rank_BRC[0].numel()
    counts_S = [round(share * num_patches) for share in MASKED]

    def still(shown_BCHW: Tensor) -> Tensor:
        return is_predicted(*_answers(predict, shown_BCHW, target_B)).float()

    positive, negative = (
        _curve(still, images_BCHW, blank_BCHW, order_BRC, counts_S, cells)
        for order_BRC in (rank_BRC, num_patches - 1 - rank_BRC)
    )
    return positive, negative


def is_highest(probability_BL: Tensor, target_B: Tensor) -> Tensor:
    """Where an image has one class: it is the most probable one."""
    return probability_BL.argmax(1) == target_B


def is_above_half(probability_BL: Tensor, target_B: Tensor) -> Tensor:
    """Where an image has any number of labels: this one is more probable than not."""
    return probability_BL.gather(1, target_B[:, None])[:, 0] > 0.5


def ranks(relevance_BRC: Tensor, batch: int) -> Tensor:
    """0 for the most relevant patch of each image, then 1, 2, …; equal ones in raster order."""
    require_maps(relevance_BRC, batch)
    order_BN = relevance_BRC.flatten(1).argsort(dim=1, descending=True, stable=True)
    return order_BN.argsort(dim=1).view_as(relevance_BRC)


@torch.no_grad()
def _curve(
    score: Callable[[Tensor], Tensor],
    from_BCHW: Tensor,
    to_BCHW: Tensor,
    rank_BRC: Tensor,
    counts_S: list[int],
    cells: Cells | None,
) -> Curve:
    """Of images with so many of their first patches from the other side."""
    num_patches = rank_BRC[0].numel()
    cell_HW = cells_for(rank_BRC, (from_BCHW.shape[2], from_BCHW.shape[3]), cells).of_pixels(rank_BRC.device)
    # Pixels that no patch holds are cropped by the model, and never change.
    rank_BHW = torch.where(cell_HW >= 0, rank_BRC.flatten(1)[:, cell_HW.clamp(min=0)], num_patches)
    rank_B1HW = rank_BHW[:, None].to(from_BCHW.device)
    scores = [score(torch.where(rank_B1HW < count, to_BCHW, from_BCHW)).float().cpu() for count in counts_S]
    return Curve(torch.tensor(counts_S) / num_patches, torch.stack(scores, dim=1))


def _steps(rank_BRC: Tensor, patches_per_step: int | None) -> list[int]:
    num_patches = rank_BRC[0].numel()
    step = -(-num_patches // STEPS) if patches_per_step is None else patches_per_step
    if not 1 <= step <= num_patches:
        raise MiradaError(f"patches_per_step={step}: must be from 1 to the {num_patches} patches of a map")
    return [*range(0, num_patches, step), num_patches]


def _blank(
    images_BCHW: Tensor,
    rank_BRC: Tensor,
    baseline: Baseline,
    black_C: Sequence[float] | None,
    cells: Cells | None,
    sigma: float | None = None,
) -> Tensor:
    cells = cells_for(rank_BRC, (images_BCHW.shape[2], images_BCHW.shape[3]), cells)
    sides = (cells.height, cells.width) if sigma is None else (sigma, sigma)
    return erased(images_BCHW, baseline, sigma=sides, black_C=black_C)


def _probability_of(predict: Predict, target_B: Tensor) -> Callable[[Tensor], Tensor]:
    def probability_B(shown_BCHW: Tensor) -> Tensor:
        probability_BL, class_B = _answers(predict, shown_BCHW, target_B)
        return probability_BL.gather(1, class_B[:, None])[:, 0]

    return probability_B


def _answers(predict: Predict, shown_BCHW: Tensor, target_B: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities (B, L), and the classes that are asked about, on the same device."""
    batch = len(shown_BCHW)
    if target_B.shape != (batch,) or target_B.is_floating_point():
        raise MiradaError(
            f"target is {target_B.dtype} of shape {tuple(target_B.shape)} for {batch} images: expected the number of "
            "one class per image"
        )
    probability_BL = predict(shown_BCHW)
    if probability_BL.ndim != 2 or len(probability_BL) != batch:
        raise MiradaError(f"predict gave {tuple(probability_BL.shape)} for {batch} images: expected (images, classes)")
    low, high = probability_BL.min().item(), probability_BL.max().item()
    if not (-1e-3 <= low and high <= 1 + 1e-3):
        raise MiradaError(f"predict gave numbers from {low:.3g} to {high:.3g}: expected probabilities, 0 to 1")
    lowest, highest = int(target_B.min()), int(target_B.max())
    if lowest < 0 or highest >= probability_BL.shape[1]:
        raise MiradaError(
            f"target has classes from {lowest} to {highest} and predict gives {probability_BL.shape[1]}: "
            f"expected 0 to {probability_BL.shape[1] - 1}"
        )
    return probability_BL, target_B.to(probability_BL.device)
