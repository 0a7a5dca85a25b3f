"""Minutes become steps once, by timing some steps on a copy of the model; the number is saved with the run."""

from __future__ import annotations

import copy
import statistics
import time

import torch
from torch import nn

from mirada.data.batches import Batches
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective, supervised

MIN_STEPS, MAX_STEPS, SECONDS = 5, 60, 4.0


def seconds_per_step(
    model: nn.Module,
    task: Task,
    batches: Batches,
    device: torch.device,
    accumulate: int,
    objective: Objective | None = None,
) -> float:
    """Median time of a training step, data included; neither the model nor the position in the data is touched."""
    objective = objective or supervised(task)
    probe = copy.deepcopy(model).to(device).train()
    optimiser = torch.optim.AdamW(probe.parameters(), lr=1e-6, fused=True)
    taken: list[float] = []
    started = time.monotonic()
    while len(taken) < MIN_STEPS or (time.monotonic() - started < SECONDS and len(taken) < MAX_STEPS):
        begin = time.monotonic()
        batch = batches.batch(0, len(taken) % len(batches))
        objective(probe, batch.inputs.to(device), batch.targets.to(device)).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        taken.append(time.monotonic() - begin)
    return statistics.median(taken[1:]) * accumulate
