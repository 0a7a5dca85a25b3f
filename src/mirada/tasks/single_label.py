"""One of C classes per input: cross-entropy, accuracy. Shape letters: B batch, N rows, C classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.tasks.intervals import wilson
from mirada.tasks.scores import calibration, confusion, per_class
from mirada.tasks.words import class_words


class SingleLabel:
    """loss = − Σ_c y_c w_c log p_c, y smoothed by ε: y ← (1 − ε) y + ε/C. Targets are numbers or shares."""

    metric = "accuracy"

    def __init__(
        self, class_names: Sequence[str], *, label_smoothing: float = 0.0, class_weights: Tensor | None = None
    ) -> None:
        self.class_names = tuple(class_names)
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights

    def loss(self, logits_BC: Tensor, targets: Tensor) -> Tensor:
        weight = None if self.class_weights is None else self.class_weights.to(logits_BC)
        return F.cross_entropy(logits_BC, targets, weight=weight, label_smoothing=self.label_smoothing)

    def measure(self, targets: Tensor) -> float:
        """What the loss divides by: the weights of the rows' classes; of shares (B, classes) the rows."""
        if self.class_weights is None or targets.ndim > 1:
            return len(targets)
        return float(self.class_weights.double()[targets].sum())

    def probabilities(self, logits_NC: Tensor) -> Tensor:
        return logits_NC.softmax(-1)

    def quick(self, logits_NC: Tensor, targets_N: Tensor) -> dict[str, float]:
        """What is watched during training."""
        loss = F.cross_entropy(logits_NC, targets_N)
        return {"loss": loss.item(), "accuracy": (logits_NC.argmax(-1) == targets_N).double().mean().item()}

    def result(self, logits_NC: Tensor, targets_N: Tensor) -> dict:
        """Everything the report says about held-out predictions."""
        probability_NC = self.probabilities(logits_NC.double()).numpy()
        target_N, predicted_N = targets_N.numpy(), probability_NC.argmax(1)
        right_N = predicted_N == target_N
        table = confusion(target_N, predicted_N, len(self.class_names))
        right_C, predicted_C, support_C = np.diag(table), table.sum(0), table.sum(1)
        rows = per_class(self.class_names, right_C, predicted_C, support_C)
        seen = [row for row in rows if row["support"]]
        bins, ece = calibration(probability_NC.max(1), right_N)
        low, high = wilson(int(right_N.sum()), len(right_N))
        result = {
            "metric": "accuracy",
            "value": float(right_N.mean()),
            "low": low,
            "high": high,
            "interval": "Wilson, 95 %",
            "n": len(right_N),
            **self.quick(logits_NC, targets_N),
            "balanced_accuracy": float(np.mean([row["recall"] for row in seen])),
            "macro_precision": float(np.mean([row["precision"] for row in seen])),
            "macro_recall": float(np.mean([row["recall"] for row in seen])),
            "macro_f1": float(np.mean([row["f1"] for row in seen])),
            "ece": ece,
            "calibration": bins,
            "per_class": rows,
            "confusion": table.tolist(),
            "majority": float(support_C.max() / len(target_N)),
        }
        if len(self.class_names) > 5:
            top5 = np.argsort(-probability_NC, axis=1)[:, :5] == target_N[:, None]
            result["top5"] = float(top5.any(1).mean())
        return result

    def answers(self, logits_NC: Tensor) -> list[dict]:
        """One row per input for predictions.csv and `predict`."""
        return class_words(self.class_names, logits_NC.detach().cpu().numpy())

    def named(self, targets_N: Tensor) -> list[dict]:
        """The targets, in the words of `answers`."""
        return [{"target": self.class_names[target]} for target in targets_N.tolist()]


def inverse_frequency(counts_C: np.ndarray) -> Tensor:
    """w_c = N / (C n_c), for the classes that occur: rare classes weigh more, the mean weight of an image is 1."""
    weights_C = counts_C.sum() / (np.maximum(counts_C, 1) * (counts_C > 0).sum())
    return torch.from_numpy(np.where(counts_C > 0, weights_C, 0.0)).float()
