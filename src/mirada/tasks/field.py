"""One number per place, learned from plots: richness, temperature, biomass.

Shape letters: B and N rows, M members, T outputs.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.tasks.field_heads import COVERAGE, Count, Gaussian, Head, Quantile, RootMeanSquare
from mirada.tasks.field_scores import block_bootstrap, field_scores

HEADS: dict[str, type[Gaussian] | type[Count] | type[Quantile] | type[RootMeanSquare]] = {
    "gaussian": Gaussian,
    "count": Count,
    "quantile": Quantile,
    "rmse": RootMeanSquare,
}


class Field:
    """A head, and what it predicts in the target's unit; outputs are (B, T) or, of an ensemble, (B, M, T)."""

    metric = "r2"

    def __init__(self, head: str, target_name: str, mean: float, std: float) -> None:
        if head not in HEADS:
            raise MiradaError(f"head {head!r}: there is none of this name; use one of {', '.join(HEADS)}.")
        self.head_name, self.target_name = head, target_name
        self.mean, self.std = float(mean), float(std) if std > 0 else 1.0
        self.head: Head = HEADS[head](self.mean, self.std)

    @property
    def num_outputs(self) -> int:
        return self.head.num_outputs

    @property
    def lowest(self) -> float:
        """No target is smaller, so no interval need be."""
        return self.head.lowest

    def described(self) -> dict:
        """For data.json; `saved_task` makes the task again from it."""
        return {
            "task": "field",
            "head": self.head_name,
            "target_name": self.target_name,
            "target_mean": self.mean,
            "target_std": self.std,
        }

    def loss(self, outputs: Tensor, targets_B: Tensor) -> Tensor:
        return self.head.loss(_members(outputs), targets_B)

    def values(self, outputs: Tensor) -> Tensor:
        """(B,) the mean of the members' predictions."""
        return self.head.members(_members(outputs)).mean(1)

    def spread(self, outputs: Tensor) -> Tensor:
        """(B,) the standard deviation of the members' predictions; 0 of a single model."""
        return self.head.members(_members(outputs)).std(1, correction=0)

    def scale(self, outputs: Tensor) -> Tensor:
        """(B,) how far off the head expects to be: what `mirada.tasks.conformal` divides residuals by."""
        return self.head.scale(_members(outputs))

    def bounds(self, outputs: Tensor, coverage: float = COVERAGE) -> tuple[Tensor, Tensor]:
        """(low, high), as the head has learned them; whether they hold what they promise is not known."""
        return self.head.bounds(_members(outputs), coverage)

    def quick(self, outputs: Tensor, targets_N: Tensor) -> dict[str, float]:
        """What is watched during training."""
        scores = field_scores(targets_N.numpy(), self.values(outputs).numpy())
        return {"loss": self.loss(outputs, targets_N).item(), "r2": scores["r2"], "mae": scores["mae"]}

    def result(self, outputs: Tensor, targets_N: Tensor, blocks_N: np.ndarray | None = None) -> dict:
        """Everything the report says about held-out rows; with blocks, the interval is that of drawing whole blocks."""
        target_N, predicted_N = targets_N.numpy(), self.values(outputs).numpy()
        scores = field_scores(target_N, predicted_N)
        low, high = block_bootstrap(target_N, predicted_N, blocks_N)["r2"]
        low_N, high_N = self.bounds(outputs)
        return {
            "metric": "r2",
            "value": scores["r2"],
            "low": low,
            "high": high,
            "interval": f"bootstrap over {'samples' if blocks_N is None else 'blocks'}, 95 %",
            "n": len(target_N),
            "loss": self.loss(outputs, targets_N).item(),
            **scores,
            "bounds": COVERAGE,
            "inside_bounds": ((targets_N >= low_N) & (targets_N <= high_N)).double().mean().item(),
            "majority": 0.0,
        }

    def answers(self, outputs: Tensor) -> list[dict]:
        """One row per place for predictions.csv and `predict`; `spread` of ensembles only."""
        columns = {f"predicted_{self.target_name}": self.values(outputs)}
        columns["low"], columns["high"] = self.bounds(outputs)
        if outputs.dim() == 3:
            columns["spread"] = self.spread(outputs)
        return _rows(columns)

    def named(self, targets_N: Tensor) -> list[dict]:
        return _rows({f"target_{self.target_name}": targets_N})


def field_task(head: str, target_name: str, train_targets_N: np.ndarray) -> Field:
    """The task with the mean and standard deviation of the training rows."""
    targets_N = np.asarray(train_targets_N, dtype=np.float64)
    if head == "count" and targets_N.min() < 0:
        raise MiradaError(
            f"target {target_name!r} goes down to {targets_N.min():.6g}, but head 'count' is for numbers from 0 on; "
            "use 'gaussian' or 'quantile'."
        )
    return Field(head, target_name, targets_N.mean(), targets_N.std())


def _members(outputs: Tensor) -> Tensor:
    """(B, M, T)."""
    return outputs if outputs.dim() == 3 else outputs[:, None]


def _rows(columns: dict[str, Tensor]) -> list[dict]:
    """One dict per row, numbers with the digits that float32 has."""
    table_NK = torch.stack(list(columns.values()), dim=1)
    return [dict(zip(columns, (float(f"{v:.7g}") for v in row), strict=True)) for row in table_NK.tolist()]
