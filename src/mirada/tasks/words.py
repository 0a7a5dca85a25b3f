"""Outputs in words: a row per input for predictions.csv and `predict`. Shape letters: N rows, C classes, T targets.

Only numpy is needed, so that an exported model answers without torch, and in the same words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

THRESHOLD = 0.5  # a label is there if its probability is above


def class_words(class_names: Sequence[str], logits_NC: np.ndarray) -> list[dict]:
    """One of the classes: p_c = exp(s_c) / Σ_k exp(s_k)."""
    logits_NC = logits_NC.astype(np.float64)
    shares_NC = np.exp(logits_NC - logits_NC.max(1, keepdims=True))
    shares_NC /= shares_NC.sum(1, keepdims=True)
    best_N = shares_NC.argmax(1)
    return [
        {
            "predicted": class_names[best],
            "confidence": round(row[best], 6),
            **{f"p_{name}": round(p, 6) for name, p in zip(class_names, row, strict=True)},
        }
        for best, row in zip(best_N.tolist(), shares_NC.tolist(), strict=True)
    ]


def label_words(class_names: Sequence[str], logits_NC: np.ndarray) -> list[dict]:
    """Any of the labels: p_c = 1 / (1 + exp(− s_c)), written so that nothing overflows."""
    shares_NC = 0.5 + 0.5 * np.tanh(0.5 * logits_NC.astype(np.float64))
    return [
        {
            "predicted": ";".join(name for name, p in zip(class_names, row, strict=True) if p > THRESHOLD),
            "confidence": round(min(max(p, 1 - p) for p in row), 6),
            **{f"p_{name}": round(p, 6) for name, p in zip(class_names, row, strict=True)},
        }
        for row in shares_NC.tolist()
    ]


def number_words(word: str, target_names: Sequence[str], values_NT: np.ndarray) -> list[dict]:
    """`word`_name of every target, in seven digits."""
    names = [f"{word}_{name}" for name in target_names]
    return [dict(zip(names, (float(f"{v:.7g}") for v in row), strict=True)) for row in values_NT.tolist()]


def surprise_words(in_channels: int, nats_N: np.ndarray) -> list[dict]:
    """How unusual an image is; see pixels.py."""
    return [
        {"nats_per_pixel": round(nats, 6), "bits_per_dimension": round(nats / (in_channels * math.log(2)), 6)}
        for nats in nats_N.tolist()
    ]


def words_of(data: dict, outputs: np.ndarray) -> list[dict]:
    """What outputs say by the data.json of a run on images: its task, and its classes or targets."""
    if data["task"] == "regression":
        std_T = np.asarray([s if s > 0 else 1.0 for s in data["target_std"]], np.float32)
        values_NT = outputs * std_T + np.asarray(data["target_mean"], np.float32)
        return number_words("predicted", data["target_names"], values_NT)
    if data["task"] == "pixels":
        return surprise_words(data["in_channels"], outputs)
    return (label_words if data["task"] == "multi-label" else class_words)(data["class_names"], outputs)
