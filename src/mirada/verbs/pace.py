"""How long a training step takes as a configuration has it: in its precision, by its optimiser and within its limit."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from mirada.config.schema import Config
from mirada.data.batches import Batches
from mirada.tasks.image import Task
from mirada.tasks.objective import Objective
from mirada.train.budget import seconds_per_step

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def step_seconds(
    config: Config, model: nn.Module, task: Task, batches: Batches, device: torch.device, objective: Objective
) -> float:
    """Of a model that is left as it is; the precision is decided, not `auto`."""
    train = config.train

    def autocast() -> AbstractContextManager:
        return nullcontext() if train.precision == "float32" else torch.autocast(device.type, DTYPES[train.precision])

    return seconds_per_step(
        *(model, task, batches, device),
        accumulate=train.accumulate,
        objective=objective,
        optimiser=train.optimiser,
        fused=train.fused,
        clip=train.clip,
        autocast=autocast,
    )
