"""Averages of weights.

MovingAverage   w̄ ← w̄ + (1 − β_t)(w − w̄),   β_t = min(β, (1 + t)/(10 + t)): evaluated and kept instead of the weights;
                after the first hundred steps once in four, with β_t⁴, or as often as it is evaluated
LastMean        (w_1 + … + w_n)/n of the last n evaluated weights (Vaswani 2017, section 6.1), tried when training ends
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from mirada.train.sharding import local

FIRST_STEPS = 100  # in which weights change so fast that they are followed at each
STRIDE = 4


class MovingAverage:
    """A copy of the model that follows it. With β = 0 it is the model itself."""

    def __init__(self, model: nn.Module, decay: float, stride: int = STRIDE) -> None:
        """stride: steps at a time, later on."""
        self.decay, self.stride = decay, stride
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.follow(model)

    def follow(self, model: nn.Module) -> None:
        """This model, from now on: one that was divided among processes has other tensors."""
        self._pairs = self._collect(model)

    def _collect(self, model: nn.Module) -> tuple[list, list, list, list]:
        own, theirs = ({n: local(t) for n, t in m.state_dict().items()} for m in (self.module, model))
        floats = [name for name, tensor in own.items() if tensor.is_floating_point()]
        others = [name for name in own if name not in set(floats)]
        return (
            [own[n] for n in floats],
            [theirs[n] for n in floats],
            [own[n] for n in others],
            [theirs[n] for n in others],
        )

    @torch.no_grad()
    def update(self, step: int) -> None:
        """To be called after step 0, 1, …: averages of weights and of running statistics, copies of counters."""
        stride = 1 if step < FIRST_STEPS else self.stride
        if (step + 1) % stride:
            return
        decay = min(self.decay, (1 + step) / (10 + step)) ** stride
        own, theirs, own_other, their_other = self._pairs
        torch._foreach_lerp_(own, theirs, 1 - decay)
        for mine, yours in zip(own_other, their_other, strict=True):
            mine.copy_(yours)


class LastMean:
    """The last `count` weights that were evaluated, and their mean."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: list[dict[str, Tensor]] = []

    def add(self, model: nn.Module) -> None:
        weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        self.kept = [*self.kept, weights][-self.count :]

    def mean(self, model: nn.Module) -> nn.Module:
        """A copy of the model with the mean weights; what is not a float is that of the last."""
        averaged = copy.deepcopy(model)
        weights = dict(self.kept[-1])
        for name, last in weights.items():
            if last.is_floating_point():
                weights[name] = torch.stack([each[name] for each in self.kept]).mean(0)
        averaged.load_state_dict(weights)
        return averaged

    def tensors(self) -> dict[str, Tensor]:
        """All of them, to be saved; `load` takes them back."""
        return {f"{number}.{name}": tensor for number, each in enumerate(self.kept) for name, tensor in each.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        numbers = sorted({int(name.split(".", 1)[0]) for name in tensors})
        self.kept = [
            {name.split(".", 1)[1]: tensor for name, tensor in tensors.items() if name.startswith(f"{number}.")}
            for number in numbers
        ]
