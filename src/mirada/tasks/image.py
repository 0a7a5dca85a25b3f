"""The task of a table of labelled images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from torch import Tensor

from mirada.data import ImageTable
from mirada.tasks.field import Field
from mirada.tasks.multi_label import MultiLabel
from mirada.tasks.pixels import Pixels
from mirada.tasks.regression import Regression
from mirada.tasks.segment import Segment
from mirada.tasks.single_label import SingleLabel, inverse_frequency


class Task(Protocol):
    """Loss, watched numbers, final result, and answers in words, from outputs and targets."""

    metric: str

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor: ...
    def quick(self, outputs: Tensor, targets: Tensor) -> dict[str, float]: ...
    def result(self, outputs: Tensor, targets: Tensor) -> dict: ...
    def answers(self, outputs: Tensor) -> list[dict]: ...
    def named(self, targets: Tensor) -> list[dict]: ...


def task_of(
    table: ImageTable, train_rows: np.ndarray, *, label_smoothing: float = 0.0, weigh_classes: bool = False
) -> Task:
    """What the targets of this table ask for; statistics come from the training rows only."""
    if table.task == "regression":
        targets = table.targets[train_rows].astype(np.float64)
        return Regression(table.target_names, targets.mean(0).tolist(), targets.std(0).tolist())
    weights = inverse_frequency(table.class_counts(train_rows)) if weigh_classes else None
    kind = MultiLabel if table.task == "multi-label" else SingleLabel
    return kind(table.class_names, label_smoothing=label_smoothing, class_weights=weights)


def saved_task(data: dict) -> Task:
    """The task of a finished run, from its data.json: for evaluating and predicting, not for training on."""
    if data["task"] == "pixels":
        return Pixels(data["in_channels"])
    if data["task"] == "segment":
        return Segment(data["class_names"])
    if data["task"] == "field":
        return Field(data["head"], data["target_name"], data["target_mean"], data["target_std"])
    if data["task"] == "regression":
        return Regression(data["target_names"], data["target_mean"], data["target_std"])
    kind = MultiLabel if data["task"] == "multi-label" else SingleLabel
    return kind(data["class_names"])


def probabilities_of(task: Task) -> Callable[[Tensor], Tensor] | None:
    """From outputs (N, C) to the share of each class; None where answers are no classes."""
    return task.probabilities if isinstance(task, SingleLabel | MultiLabel) else None
