"""Minutes become steps once, by timing some steps on a copy of the model; the number is saved with the run.

A neighbour that is busy for a moment must not decide how long is trained: the quicker steps count, and where many are
much slower than these, more are timed.
"""

from __future__ import annotations

import copy
import statistics
import time

import torch
from torch import nn

from mirada.data.batches import Batches
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective, supervised
from mirada.train.optimiser import OptimiserName, make_optimiser

MIN_STEPS, MAX_STEPS, SECONDS, MOST_SECONDS = 5, 60, 4.0, 20.0
STEADY = 1.5  # the median in the lower quartile, up to which steps are alike


def seconds_per_step(
    model: nn.Module,
    task: Task,
    batches: Batches,
    device: torch.device,
    *,
    accumulate: int = 1,
    objective: Objective | None = None,
    optimiser: OptimiserName = "adamw",
) -> float:
    """Time of a training step, data included; neither the model nor the position in the data is touched."""
    objective = objective or supervised(task)
    probe = copy.deepcopy(model).to(device).train()
    update = make_optimiser(optimiser, probe, learning_rate=1e-6, weight_decay=0.0, betas=(0.9, 0.999))
    taken: list[float] = []
    started = time.monotonic()
    while not is_enough(taken[1:], time.monotonic() - started):
        begin = time.monotonic()
        batch = batches.batch(0, len(taken) % len(batches))
        objective(probe, batch.inputs.to(device), batch.targets.to(device)).backward()
        update.step()
        update.zero_grad(set_to_none=True)
        taken.append(time.monotonic() - begin)
    return quicker(taken[1:]) * accumulate


def is_enough(taken: list[float], seconds: float) -> bool:
    if len(taken) + 1 < MIN_STEPS:
        return False
    if seconds >= MOST_SECONDS:
        return True
    is_steady = statistics.median(taken) <= STEADY * quicker(taken)
    return is_steady and (seconds >= SECONDS or len(taken) + 1 >= MAX_STEPS)


def quicker(taken: list[float]) -> float:
    """The lower quartile."""
    return statistics.quantiles(taken, n=4, method="inclusive")[0]
