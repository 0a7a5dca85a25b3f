"""Numbers to judge predictions by, from arrays: shape letters N rows, C classes."""

from __future__ import annotations

import numpy as np


def confusion(target_N: np.ndarray, predicted_N: np.ndarray, num_classes: int) -> np.ndarray:
    """(C, C) counts: rows are targets, columns predictions."""
    return np.bincount(target_N * num_classes + predicted_N, minlength=num_classes**2).reshape(num_classes, num_classes)


def precision_recall_f1(right_C: np.ndarray, predicted_C: np.ndarray, support_C: np.ndarray) -> np.ndarray:
    """(C, 3) from counts; a class that is never predicted has precision 0, one that never occurs has recall 0."""
    precision = right_C / np.maximum(predicted_C, 1)
    recall = right_C / np.maximum(support_C, 1)
    f1 = 2 * right_C / np.maximum(predicted_C + support_C, 1)
    return np.stack([precision, recall, f1], axis=1)


def per_class(
    names: tuple[str, ...], right_C: np.ndarray, predicted_C: np.ndarray, support_C: np.ndarray
) -> list[dict]:
    """One row per class for tables."""
    rows = precision_recall_f1(right_C, predicted_C, support_C)
    return [
        {"name": name, "precision": float(p), "recall": float(r), "f1": float(f), "support": int(n)}
        for name, (p, r, f), n in zip(names, rows, support_C, strict=True)
    ]


def calibration(confidence_N: np.ndarray, right_N: np.ndarray, num_bins: int = 10) -> tuple[list[dict], float]:
    """Mean confidence against accuracy in equal-width bins, and the expected error Σ n_b/N |acc_b − conf_b|."""
    bin_N = np.minimum((confidence_N * num_bins).astype(int), num_bins - 1)
    rows, error = [], 0.0
    for number in range(num_bins):
        inside = bin_N == number
        count = int(inside.sum())
        if count:
            confidence, accuracy = float(confidence_N[inside].mean()), float(right_N[inside].mean())
            rows.append({"confidence": confidence, "accuracy": accuracy, "count": count})
            error += count / len(confidence_N) * abs(accuracy - confidence)
    return rows, error


def r2(target: np.ndarray, predicted: np.ndarray) -> float:
    """1 − Σ(y − ŷ)² / Σ(y − ȳ)²; NaN where the target does not vary."""
    total = ((target - target.mean(0)) ** 2).sum()
    return float(1 - ((target - predicted) ** 2).sum() / total) if total > 0 else float("nan")
