"""What a training step makes small: a number from the model, the inputs of a batch and their targets."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from mirada.tasks.image import Task

Objective = Callable[[nn.Module, Tensor, Tensor], Tensor]


def supervised(task: Task) -> Objective:
    """The loss of the task on what the model says of the inputs."""
    return lambda model, inputs, targets: task.loss(model(inputs), targets)
