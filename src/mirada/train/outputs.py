"""Outputs of a model for many images. Shape letters: N rows, C outputs."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mirada.data.batches import Batch
from mirada.machine.processes import together


@torch.inference_mode()
def outputs_of(model: nn.Module, batches: Iterable[Batch], device: torch.device | None = None) -> tuple[Tensor, ...]:
    """(outputs_NC, targets, rows) on the CPU, in the order of the batches; the model is left in evaluation mode.

    Processes that work together share the batches, and each gets all the outputs.
    """
    model.eval()
    processes = together()
    answered = [
        (model(batch.inputs.to(device)).float().cpu(), batch.targets, batch.rows) for batch in processes.share(batches)
    ]
    outputs, targets, rows = zip(*processes.gathered(answered), strict=True)
    return torch.cat(outputs), torch.cat(targets), torch.cat(rows)
