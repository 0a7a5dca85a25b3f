"""Scores of many masks. Shape letters: N images, C classes, H height, W width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mirada.tasks.intervals import bootstrap
from mirada.tasks.mask_scores import dice_of, edge_scores, iou_of, mask_confusion


@dataclass(frozen=True, eq=False)
class Predicted:
    """What was said of images, beside what is true."""

    masks_NHW: np.ndarray  # uint8
    targets_NHW: np.ndarray  # uint8, IGNORED where it counts for nothing

    def __len__(self) -> int:
        return len(self.masks_NHW)


def mask_result(
    masks: Predicted, class_names: Sequence[str], judged: tuple[int, ...], groups_N: np.ndarray | None = None
) -> tuple[dict, list[dict]]:
    """Everything the report says, and a row per mask; `groups_N` says which masks are tiles of one image."""
    groups_N = np.arange(len(masks)) if groups_N is None else groups_N
    num_classes = len(class_names)
    confusions_NCC = confusions(masks, num_classes)
    dice_NC = np.stack([dice_of(confusion) for confusion in confusions_NCC])
    edges = [
        _edges(found, target, num_classes) for found, target in zip(masks.masks_NHW, masks.targets_NHW, strict=True)
    ]
    hd95_NC, f1_NC = (np.array([[scores[c][part] for c in range(num_classes)] for scores in edges]) for part in (0, 1))
    low, high = interval(dice_NC, judged, groups_N)
    pooled = confusions_NCC.sum(0)
    per_class = [
        {
            "name": class_name,
            "dice": _known(_mean(dice_NC[:, c])),
            "iou": _known(float(iou_of(pooled)[c])),
            "hd95": _known(_mean(hd95_NC[:, c])),
            "boundary_f1": _known(_mean(f1_NC[:, c])),
            "images": int((confusions_NCC[:, c].sum(1) > 0).sum()),
            "pixels": int(pooled[c].sum()),
        }
        for c, class_name in enumerate(class_names)
    ]
    result = {
        "metric": "dice",
        "value": mean_dice(confusions_NCC, judged),
        "low": low,
        "high": high,
        "interval": "bootstrap over images, 95 %",
        "n": len(np.unique(groups_N)),
        "iou": pooled_iou(confusions_NCC, judged),
        "hd95": _known(_mean_of_classes(hd95_NC[:, list(judged)])),
        "boundary_f1": _known(_mean_of_classes(f1_NC[:, list(judged)])),
        "pixel_accuracy": float(np.diag(pooled).sum() / pooled.sum()),
        "majority": best_constant(masks, len(class_names), judged),
        "per_class": per_class,
        "confusion": pooled.tolist(),
    }
    lines = [
        {
            "dice": _rounded(_mean(dice_NC[number, list(judged)])),
            "iou": _rounded(_mean(iou_of(confusions_NCC[number])[list(judged)])),
            **{f"dice_{class_name}": _rounded(dice_NC[number, c]) for c, class_name in enumerate(class_names)},
            **{f"hd95_{class_name}": _rounded(hd95_NC[number, c]) for c, class_name in enumerate(class_names)},
        }
        for number in range(len(masks))
    ]
    return result, lines


def watched_numbers(masks: Predicted, num_classes: int, judged: tuple[int, ...]) -> dict[str, float]:
    """What is told during training."""
    confusions_NCC = confusions(masks, num_classes)
    return {"dice": mean_dice(confusions_NCC, judged), "iou": pooled_iou(confusions_NCC, judged)}


def confusions(masks: Predicted, num_classes: int) -> np.ndarray:
    """(N, C, C), an image each."""
    pairs = zip(masks.masks_NHW, masks.targets_NHW, strict=True)
    return np.stack([mask_confusion(found, target, num_classes) for found, target in pairs])


def mean_dice(confusions_NCC: np.ndarray, judged: tuple[int, ...]) -> float:
    """The mean over classes of the mean over the images that have the class or were said to."""
    return _mean_of_classes(np.stack([dice_of(confusion) for confusion in confusions_NCC])[:, list(judged)])


def pooled_iou(confusions_NCC: np.ndarray, judged: tuple[int, ...]) -> float:
    """The mean over classes of the IoU of all pixels together, which is how benchmarks have it."""
    return _mean(iou_of(confusions_NCC.sum(0))[list(judged)])


def interval(dice_NC: np.ndarray, judged: tuple[int, ...], groups_N: np.ndarray) -> tuple[float, float]:
    """95 %, by drawing images again, each with all of its tiles."""
    dice_NJ = dice_NC[:, list(judged)]
    rows_of = [np.flatnonzero(groups_N == group) for group in np.unique(groups_N)]
    return bootstrap(
        lambda drawn: _mean_of_classes(dice_NJ[np.concatenate([rows_of[group] for group in drawn])]), len(rows_of)
    )


def best_constant(masks: Predicted, num_classes: int, judged: tuple[int, ...]) -> float:
    """The Dice of whoever says the same class everywhere, for the class that does best so."""
    found = []
    for c in range(num_classes):
        same = Predicted(np.full_like(masks.masks_NHW, c), masks.targets_NHW)
        found.append(mean_dice(confusions(same, num_classes), judged))
    return max(found)


def _edges(predicted_HW: np.ndarray, target_HW: np.ndarray, num_classes: int) -> list[tuple[float, float]]:
    """HD95 and boundary F1 of each class; what counts for nothing is taken as predicted right."""
    counts = target_HW < num_classes
    found = [edge_scores(counts & (predicted_HW == c), target_HW == c) for c in range(num_classes)]
    return [(np.nan, np.nan) if one is None else (one.hd95, one.boundary_f1) for one in found]


def _mean_of_classes(dice_NJ: np.ndarray) -> float:
    return _mean(np.array([_mean(column) for column in dice_NJ.T]))


def _mean(values: np.ndarray) -> float:
    """Of those that are numbers; NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else value


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 6)
