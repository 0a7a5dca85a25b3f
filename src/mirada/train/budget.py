"""Minutes become steps once, by timing some steps on a copy of the model; the number is saved with the run.

The same steps are timed several times over, and of each the median counts: a neighbour that is busy for a moment must
not decide how long is trained, but that steps differ by nature must.
"""

from __future__ import annotations

import copy
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from accelerate.utils import convert_outputs_to_fp32
from torch import nn

from mirada.data.batches import Batch, Batches
from mirada.machine.memory import kept_for_reuse
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective, supervised
from mirada.train.optimiser import OptimiserName, make_optimiser

MIN_STEPS, MAX_STEPS = 4, 64  # that are timed over and over
SECONDS, MOST_SECONDS = 4.0, 20.0  # of all rounds
ALIKE = 1.2  # times the fastest round: another one that took no longer confirms it


@kept_for_reuse()
def seconds_per_step(
    model: nn.Module,
    task: Task,
    batches: Batches,
    device: torch.device,
    *,
    accumulate: int = 1,
    objective: Objective | None = None,
    optimiser: OptimiserName = "adamw",
    fused: bool = True,
    clip: float = 0.0,
    autocast: Callable[[], AbstractContextManager] = nullcontext,
) -> float:
    """Time of a training step, data included, as it will be: neither the model nor the position in the data is touched.

    autocast: in which the loss is computed, as where products are bfloat16.
    """
    objective = objective or supervised(task)
    probe = for_trial(model).to(device)
    update = make_optimiser(optimiser, probe, learning_rate=1e-6, weight_decay=0.0, betas=(0.9, 0.999), fused=fused)

    def timed(count: int) -> list[float]:
        taken, stream = [], first_batches(batches, count)
        begin = time.monotonic()
        for batch in stream:
            with autocast():
                loss = objective(probe, batch.inputs.to(device), batch.targets.to(device))
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(probe.parameters(), clip)
            update.step()
            update.zero_grad(set_to_none=True)
            taken.append(time.monotonic() - begin)
            begin = time.monotonic()
        return taken

    timed(1)  # memory and kernels are prepared
    typical = timed(2)[-1]  # the first of a group pays for the images of all
    count = min(MAX_STEPS, max(MIN_STEPS, round(SECONDS / 2 / typical)))
    group = getattr(batches, "group", 1)  # small images are prepared several batches at a time: whole groups are timed
    count = min(-(-count // group) * group, len(batches))
    rounds: list[list[float]] = []
    started = time.monotonic()
    while not is_enough(rounds, time.monotonic() - started):
        rounds.append(timed(count))
    return mean_of_typical(rounds) * accumulate


def for_trial(model: nn.Module) -> nn.Module:
    """A copy to be trained, whose outputs are float32 whatever it computes in, as Accelerate has them."""
    probe = copy.deepcopy(model).train()
    probe.forward = convert_outputs_to_fp32(probe.forward)
    return probe


def first_batches(batches: Batches, count: int) -> Iterator[Batch]:
    """Of the first epoch; afterwards the position is what it was."""
    position = batches.epoch, batches.step
    batches.epoch, batches.step = 0, 0
    try:
        yield from itertools.islice(batches, count)
    finally:
        batches.epoch, batches.step = position


def is_enough(rounds: list[list[float]], seconds: float) -> bool:
    if len(rounds) < 2:
        return False
    fastest, second = sorted(map(sum, rounds))[:2]
    return seconds >= MOST_SECONDS or (seconds >= SECONDS and second <= ALIKE * fastest)


def mean_of_typical(rounds: list[list[float]]) -> float:
    """The mean over the steps of the median time that each had, of two the lower."""
    return statistics.mean(map(statistics.median_low, zip(*rounds, strict=True)))
