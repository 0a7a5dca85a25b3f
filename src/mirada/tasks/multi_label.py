"""Any number of C labels per input: binary cross-entropy per label, F1. Shape letters: N rows, C labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from mirada.tasks.intervals import bootstrap
from mirada.tasks.scores import per_class
from mirada.tasks.words import THRESHOLD, label_words


class MultiLabel:
    """loss = − mean over labels of y log σ(s) + (1 − y) log(1 − σ(s)), y smoothed towards ½ by ε."""

    metric = "f1"

    def __init__(
        self, class_names: Sequence[str], *, label_smoothing: float = 0.0, class_weights: Tensor | None = None
    ) -> None:
        self.class_names = tuple(class_names)
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights

    def loss(self, logits_NC: Tensor, targets_NC: Tensor) -> Tensor:
        smooth_NC = targets_NC * (1 - self.label_smoothing) + self.label_smoothing / 2
        weight = None if self.class_weights is None else self.class_weights.to(logits_NC)
        return F.binary_cross_entropy_with_logits(logits_NC, smooth_NC, weight=weight)

    def probabilities(self, logits_NC: Tensor) -> Tensor:
        return logits_NC.sigmoid()

    def quick(self, logits_NC: Tensor, targets_NC: Tensor) -> dict[str, float]:
        loss = F.binary_cross_entropy_with_logits(logits_NC, targets_NC)
        return {"loss": loss.item(), "f1": _micro_f1(targets_NC.numpy() > 0, logits_NC.numpy() > 0)}

    def result(self, logits_NC: Tensor, targets_NC: Tensor) -> dict:
        from sklearn.metrics import average_precision_score  # which takes as long to import as torch

        probability_NC = logits_NC.double().sigmoid().numpy()
        target_NC, predicted_NC = targets_NC.numpy() > 0, probability_NC > THRESHOLD
        right_C = (target_NC & predicted_NC).sum(0)
        rows = per_class(self.class_names, right_C, predicted_NC.sum(0), target_NC.sum(0))
        for number, row in enumerate(rows):
            seen = 0 < row["support"] < len(target_NC)
            precision = average_precision_score(target_NC[:, number], probability_NC[:, number]) if seen else None
            row["average_precision"] = None if precision is None else float(precision)
        known = [row["average_precision"] for row in rows if row["average_precision"] is not None]
        low, high = bootstrap(lambda rows: _micro_f1(target_NC[rows], predicted_NC[rows]), len(target_NC))
        frequent_C = np.broadcast_to(target_NC.mean(0) > 0.5, target_NC.shape)
        return {
            "metric": "f1",
            "value": _micro_f1(target_NC, predicted_NC),
            "low": low,
            "high": high,
            "interval": "bootstrap over images, 95 %",
            "n": len(target_NC),
            **self.quick(logits_NC, targets_NC),
            "macro_f1": float(np.mean([row["f1"] for row in rows])),
            "mean_average_precision": float(np.mean(known)) if known else None,
            "exact_match": float((target_NC == predicted_NC).all(1).mean()),
            "per_class": rows,
            "majority": _micro_f1(target_NC, frequent_C),
        }

    def answers(self, logits_NC: Tensor) -> list[dict]:
        return label_words(self.class_names, logits_NC.detach().cpu().numpy())

    def named(self, targets_NC: Tensor) -> list[dict]:
        return [
            {"target": ";".join(name for name, y in zip(self.class_names, row, strict=True) if y > 0)}
            for row in targets_NC.tolist()
        ]


def _micro_f1(target_NC: np.ndarray, predicted_NC: np.ndarray) -> float:
    """2·TP / (2·TP + FP + FN) over all labels of all rows; 1 where there is nothing to find and nothing was found."""
    total = target_NC.sum() + predicted_NC.sum()
    return float(2 * (target_NC & predicted_NC).sum() / total) if total else 1.0
