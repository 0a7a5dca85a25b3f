"""Batches for processes that train together: batch b is drawn as one process would draw it, and each takes its share.

    loss = (1/P) Σ_p w_p loss_p,    w_p = P · m(share p)/m(batch)

m says over how much the loss is a mean: rows, or tokens that are asked for. So the mean over the P processes, of the
losses and of their gradients, is that of the whole batch in one process, also where shares differ in size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from torch import Tensor

from mirada.data.batches import Batch, Batches
from mirada.machine.processes import Processes


class SharedBatches:
    """Augmentation and mixing are those of the whole batch: cheap beside a training step, and the same for any P."""

    def __init__(self, batches: Batches, processes: Processes, measure: Callable[[Tensor], float] = len) -> None:
        self.batches, self.processes, self.measure = batches, processes, measure

    @property
    def epoch(self) -> int:
        return self.batches.epoch

    @epoch.setter
    def epoch(self, value: int) -> None:
        self.batches.epoch = value

    @property
    def step(self) -> int:
        return self.batches.step

    @step.setter
    def step(self, value: int) -> None:
        self.batches.step = value

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return map(self._part, self.batches)

    def batch(self, epoch: int, step: int) -> Batch:
        return self._part(self.batches.batch(epoch, step))

    def _part(self, whole: Batch) -> Batch:
        rank, count = self.processes.rank, self.processes.count
        first, last = (len(whole.inputs) * number // count for number in (rank, rank + 1))
        if first == last:  # all must take part: a row that weighs nothing
            return Batch(whole.inputs[:1], whole.targets[:1], whole.rows[:0], weight=0.0)
        part = Batch(whole.inputs[first:last], whole.targets[first:last], whole.rows[first:last])
        measured = float(self.measure(whole.targets))
        weight = count * float(self.measure(part.targets)) / measured if measured else 1.0
        return dataclasses.replace(part, weight=weight)
