"""How long a training step takes as a configuration has it: in its precision, by its optimiser and within its limit.

`train.precision=auto` becomes what makes the step of this very model shorter on this machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from mirada.config.schema import Config
from mirada.data.batches import Batch, Batches
from mirada.machine.memory import kept_for_reuse
from mirada.machine.precision import Trial, Try, try_out, try_products
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective
from mirada.train.budget import first_batches, for_trial, seconds_per_step

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Learner:
    """A model and what it learns: all that a step of training needs but the recipe."""

    model: nn.Module
    task: Task
    batches: Batches
    device: torch.device
    objective: Objective


def step_seconds(config: Config, learner: Learner) -> float:
    """Of a model that is left as it is; the precision is decided, not `auto`."""
    train = config.train
    return seconds_per_step(
        *(learner.model, learner.task, learner.batches, learner.device),
        accumulate=train.accumulate,
        objective=learner.objective,
        optimiser=train.optimiser,
        fused=train.fused,
        clip=train.clip,
        autocast=lambda: _autocast(learner.device, DTYPES[train.precision]),
    )


def with_precision(config: Config, learner: Learner, says: Callable[[str], None], trial: Try = try_out) -> Config:
    """What `auto` means for this model on this machine; whoever asks for bfloat16 without units for it is told so."""
    asked, device = config.train.precision, learner.device
    shapes = [parameter.shape for parameter in learner.model.parameters()]
    if asked == "bfloat16" and device.type == "cpu" and (found := try_products(shapes)).is_hopeless:
        says(
            f"train.precision=bfloat16 is {found.slower:.1f} times slower than float32 on this processor; "
            "train.precision=float32 or auto avoids that."
        )
    if asked != "auto":
        return config
    if device.type != "cpu":
        is_able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return _train_by(config, precision="bfloat16" if is_able else "float32")
    with kept_for_reuse():
        found = trial(shapes, _gradient_step(learner))
    says(_told(found))
    return _train_by(config, precision=found.precision, fused=found.is_fused)


def _gradient_step(learner: Learner) -> Callable[[torch.dtype], None]:
    """Forward and backward on the first batch, by a copy of the model."""

    @functools.cache  # nothing is copied where products alone decide
    def prepared() -> tuple[nn.Module, Batch]:
        (batch,) = first_batches(learner.batches, 1)
        return for_trial(learner.model), batch

    def step(precision: torch.dtype) -> None:
        probe, batch = prepared()
        with _autocast(learner.device, precision):
            loss = learner.objective(probe, batch.inputs, batch.targets)
        loss.backward()
        probe.zero_grad(set_to_none=True)

    return step


def _autocast(device: torch.device, precision: torch.dtype) -> AbstractContextManager:
    return nullcontext() if precision == torch.float32 else torch.autocast(device.type, precision)


def _told(found: Trial) -> str:
    ways = {"fused": found.fused, "each by itself": found.foreach}
    (way, taken), (_, otherwise) = sorted(ways.items(), reverse=found.is_fused)
    return (
        f"Precision {found.precision}: bfloat16 takes {found.slower:.2g} times as long as float32 here; weights are "
        f"updated {way} ({taken * 1e3:.2g} ms, otherwise {otherwise * 1e3:.2g} ms)."
    )


def _train_by(config: Config, **values: object) -> Config:
    return config.model_copy(update={"train": config.train.model_copy(update=values)})
