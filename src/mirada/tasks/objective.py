"""What a training step makes small: a number from the model, the inputs of a batch and their targets."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from mirada.tasks.image import Task

Objective = Callable[[nn.Module, Tensor, Tensor], Tensor]


def measure_of(task: object) -> Callable[[Tensor], float]:
    """Over how much of a batch's targets the loss of a task is a mean: rows, if the task says nothing else."""
    return getattr(task, "measure", len)


def supervised(task: Task) -> Objective:
    """The loss of the task on what the model says of the inputs."""
    return lambda model, inputs, targets: task.loss(model(inputs), targets)
