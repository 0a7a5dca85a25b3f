"""Outputs of a model for many images. Shape letters: N rows, C outputs."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mirada.data.batches import Batch


@torch.inference_mode()
def outputs_of(model: nn.Module, batches: Iterable[Batch], device: torch.device | None = None) -> tuple[Tensor, ...]:
    """(outputs_NC, targets, rows) on the CPU, in the order of the batches; the model is left in evaluation mode."""
    model.eval()
    outputs, targets, rows = [], [], []
    for batch in batches:
        outputs.append(model(batch.inputs.to(device)).float().cpu())
        targets.append(batch.targets)
        rows.append(batch.rows)
    return torch.cat(outputs), torch.cat(targets), torch.cat(rows)
