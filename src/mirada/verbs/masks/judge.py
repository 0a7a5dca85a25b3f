"""What held-out masks say of a model: streamed, as the outputs for all pixels would not fit in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from mirada.data.batches import Batch
from mirada.data.table import ImageTable
from mirada.tasks.mask_result import Predicted, mask_result, watched_numbers
from mirada.tasks.segment import Segment, classes_of


def watch(model: nn.Module, task: Segment, batches: Iterable[Batch], device: torch.device) -> dict[str, float]:
    """Loss, Dice and IoU, of the classes that are judged."""
    loss, masks, _ = predict_all(model, task, batches, device)
    return {"loss": loss, **watched_numbers(masks, len(task.class_names), task.judged)}


def judge(
    model: nn.Module,
    task: Segment,
    batches: Iterable[Batch],
    device: torch.device,
    table: ImageTable,
) -> tuple[dict, list[dict], Predicted, np.ndarray]:
    """Everything the report says, a row per image, the masks, and the rows of the data that they are of."""
    started = time.monotonic()
    loss, masks, rows_N = predict_all(model, task, batches, device)
    seconds = time.monotonic() - started
    assert table.groups is not None
    result, scores = mask_result(masks, task.class_names, task.judged, table.groups[rows_N])
    lines = [{"name": table.name(row), "row": row, **line} for row, line in zip(rows_N.tolist(), scores, strict=True)]
    return result | {"loss": loss, "seconds_per_image": seconds / len(masks)}, lines, masks, rows_N


@torch.inference_mode()
def predict_all(
    model: nn.Module, task: Segment, batches: Iterable[Batch], device: torch.device
) -> tuple[float, Predicted, np.ndarray]:
    """The mean loss over images, what was predicted, and of which rows."""
    model.eval()
    losses, predicted, targets, rows = 0.0, [], [], []
    for batch in batches:
        logits = model(batch.inputs.to(device)).float().cpu()
        losses += task.loss(logits, batch.targets).item() * len(batch.rows)
        predicted.append(classes_of(logits).numpy())
        targets.append(batch.targets.to(torch.uint8).numpy())
        rows.append(batch.rows.numpy())
    rows_N = np.concatenate(rows)
    return losses / len(rows_N), Predicted(np.concatenate(predicted), np.concatenate(targets)), rows_N
