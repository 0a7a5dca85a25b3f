"""How a model is watched while it trains and judged when it is done, where every row of the data has one answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from mirada.config.schema import Config
from mirada.data.batches import Batch
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective, supervised
from mirada.train.folder import RunFolder
from mirada.train.outputs import outputs_of

Some = TypeVar("Some", bound="ReadyAtOnce")


class ReadyAtOnce:
    """Images and nodes: nothing of the data waits for the configuration, and data.json holds all of it."""

    def ready(self: Some, config: Config, folder: RunFolder | None = None) -> Some:
        return self

    def save(self, folder: RunFolder) -> None:
        """Nothing more is needed."""


class AnsweredByRow:
    """Images, nodes, classes of texts: the outputs of a side fit in memory, and the task puts them into words."""

    if TYPE_CHECKING:
        inputs: str

        @property
        def held_out(self) -> str: ...
        @property
        def task_name(self) -> str: ...
        def name(self, row: int) -> str: ...
        def evaluation(self, side: str) -> Iterator[Batch]: ...

    def objective(self, task: Task) -> Objective:
        """What a training step makes small."""
        return supervised(task)

    def watched(self, model: nn.Module, task: Task, device: torch.device) -> dict[str, float]:
        """What the validation side says of the model now."""
        outputs, targets, _ = outputs_of(model, self.evaluation("val"), device)
        return task.quick(outputs, targets)

    def judged(self, folder: RunFolder, model: nn.Module, task: Task, device: torch.device) -> tuple[dict, list[dict]]:
        """What the held-out side says of the best model: numbers, and a row per answer. Pictures go to the folder."""
        started = time.monotonic()
        outputs, targets, rows = outputs_of(model, self.evaluation(self.held_out), device)
        seconds = time.monotonic() - started
        numbers, lines = self.told(task, outputs, targets, rows)
        result = {
            "split": self.held_out,
            "inputs": self.inputs,
            "task": self.task_name,
            "seconds_per_image": seconds / len(rows),
            **numbers,
            **self.further_results(folder, model, device),
        }
        return result, lines

    def told(self, task: Task, outputs: Tensor, targets: Tensor, rows: Tensor) -> tuple[dict, list[dict]]:
        """The task's numbers, and a line per row."""
        lines = [
            {"name": self.name(row), "row": row, **target, **answer}
            for row, target, answer in zip(rows.tolist(), task.named(targets), task.answers(outputs), strict=True)
        ]
        return task.result(outputs, targets), lines

    def further_results(self, folder: RunFolder, model: nn.Module, device: torch.device) -> dict:
        """What is measured of the best model besides the task's own numbers."""
        return {}
