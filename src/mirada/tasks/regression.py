"""Numbers per input: squared error on standardised targets, R². Shape letters: N rows, T targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.tasks.intervals import bootstrap
from mirada.tasks.scores import r2
from mirada.tasks.words import number_words


class Regression:
    """loss = mean ((y − μ)/σ − ŷ)², with μ and σ of the training targets; predictions are scaled back."""

    metric = "r2"

    def __init__(self, target_names: Sequence[str], mean: Sequence[float], std: Sequence[float]) -> None:
        self.target_names = tuple(target_names)
        self.mean = torch.tensor(mean, dtype=torch.float32)
        self.std = torch.tensor([s if s > 0 else 1.0 for s in std], dtype=torch.float32)

    def loss(self, outputs_NT: Tensor, targets_NT: Tensor) -> Tensor:
        return F.mse_loss(outputs_NT, (targets_NT - self.mean.to(outputs_NT)) / self.std.to(outputs_NT))

    def values(self, outputs_NT: Tensor) -> Tensor:
        return outputs_NT * self.std + self.mean

    def quick(self, outputs_NT: Tensor, targets_NT: Tensor) -> dict[str, float]:
        predicted, target = self.values(outputs_NT).double().numpy(), targets_NT.double().numpy()
        return {
            "loss": self.loss(outputs_NT, targets_NT).item(),
            "r2": r2(target, predicted),
            "mae": float(np.abs(predicted - target).mean()),
        }

    def result(self, outputs_NT: Tensor, targets_NT: Tensor) -> dict:
        predicted, target = self.values(outputs_NT).double().numpy(), targets_NT.double().numpy()
        low, high = bootstrap(lambda rows: r2(target[rows], predicted[rows]), len(target))
        return {
            "metric": "r2",
            "value": r2(target, predicted),
            "low": low,
            "high": high,
            "interval": "bootstrap over images, 95 %",
            "n": len(target),
            **self.quick(outputs_NT, targets_NT),
            "rmse": float(np.sqrt(((predicted - target) ** 2).mean())),
            "per_target": [
                {
                    "name": name,
                    "r2": r2(target[:, t], predicted[:, t]),
                    "mae": float(np.abs(target - predicted)[:, t].mean()),
                }
                for t, name in enumerate(self.target_names)
            ],
            "majority": 0.0,
        }

    def answers(self, outputs_NT: Tensor) -> list[dict]:
        return number_words("predicted", self.target_names, self.values(outputs_NT).detach().numpy())

    def named(self, targets_NT: Tensor) -> list[dict]:
        return number_words("target", self.target_names, targets_NT.numpy())
