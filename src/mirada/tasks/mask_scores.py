"""How well a mask fits, class by class. Shape letters: C classes, H height, W width.

    Dice = 2 |P ∩ T| / (|P| + |T|)        IoU = |P ∩ T| / |P ∪ T|
    HD95 = max(p95 of d(x, ∂T) over x in ∂P, p95 of d(x, ∂P) over x in ∂T), in pixels; ∂ is the edge of a mask
    boundary F1 = of the shares of either edge that lie within a tolerance of the other, at least one pixel

Empty masks: where neither has the class, the image says nothing of it and is left out of its mean. Where only one has
it, Dice, IoU and boundary F1 are 0, and HD95 is the diagonal of the image, its worst value. (TransUNet's
code gives a class that is found where there is none a Dice of 1.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_erosion, distance_transform_edt

TOLERANCE = 0.0075  # of the diagonal: how near edges must be to count as the same (as for the Berkeley benchmark)


def mask_confusion(predicted: np.ndarray, target: np.ndarray, num_classes: int) -> np.ndarray:
    """(C, C) counts of pixels: rows are targets, columns predictions; pixels whose target is no class do not count."""
    known = target < num_classes
    pairs = target[known].astype(np.int64) * num_classes + predicted[known]
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def dice_of(confusion_CC: np.ndarray) -> np.ndarray:
    """(C,); NaN where neither has the class."""
    right, sizes = np.diag(confusion_CC), confusion_CC.sum(0) + confusion_CC.sum(1)
    return _ratio(2 * right, sizes)


def iou_of(confusion_CC: np.ndarray) -> np.ndarray:
    """(C,); NaN where neither has the class."""
    right = np.diag(confusion_CC)
    return _ratio(right, confusion_CC.sum(0) + confusion_CC.sum(1) - right)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


@dataclass(frozen=True)
class EdgeScores:
    hd95: float  # pixels
    boundary_f1: float


def edge_scores(predicted_HW: np.ndarray, target_HW: np.ndarray) -> EdgeScores | None:
    """Of two masks of true and false; None where both are empty."""
    diagonal = math.hypot(*target_HW.shape)
    if not predicted_HW.any() and not target_HW.any():
        return None
    if not predicted_HW.any() or not target_HW.any():
        return EdgeScores(diagonal, 0.0)
    edge, true_edge = edge_of(predicted_HW), edge_of(target_HW)
    # Of all pixels, how far the edge is: one transform answers for every pixel of the other edge.
    to_true, to_found = distance_transform_edt(~true_edge)[edge], distance_transform_edt(~edge)[true_edge]
    near = max(1.0, TOLERANCE * diagonal)
    precision, recall = float((to_true <= near).mean()), float((to_found <= near).mean())
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return EdgeScores(float(max(np.percentile(to_true, 95), np.percentile(to_found, 95))), f1)


def edge_of(mask_HW: np.ndarray) -> np.ndarray:
    """Pixels of the mask that touch what is not of it, above, below, left or right; the border of the image is edge."""
    return mask_HW & ~binary_erosion(mask_HW)
