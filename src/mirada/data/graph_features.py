"""Features of nodes at a scale that can be learnt from, and the numbers to do the same to another graph.

    rows      x_i ← x_i / Σ_d x_id           bags of words and the like: never negative, mostly zero
    columns   x_id ← (x_id − μ_d) / σ_d      measurements

Shape letters: N nodes, D features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor

from mirada.data.graph import divided_by_sum

MOSTLY = 0.5  # share of zeros


@dataclass(frozen=True)
class FeatureScale:
    """`mean` and `std` are those of the graph that was trained on; empty for rows."""

    kind: Literal["rows", "columns"]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def apply(self, features_ND: Tensor) -> Tensor:
        if self.kind == "rows":
            return divided_by_sum(features_ND)
        return (features_ND - torch.tensor(self.mean)) / torch.tensor(self.std)

    @property
    def note(self) -> str:
        if self.kind == "rows":
            return "the features are mostly zero, as bags of words are: those of a node are divided by their sum."
        return "each feature is shifted and scaled to mean 0 and standard deviation 1 over all nodes."

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict) -> FeatureScale:
        return cls(saved["kind"], tuple(saved["mean"]), tuple(saved["std"]))


def scale_for(features_ND: Tensor) -> FeatureScale:
    """Features need no label, so those of all nodes may be used."""
    if bool((features_ND >= 0).all()) and float((features_ND == 0).float().mean()) > MOSTLY:
        return FeatureScale("rows")
    std_D, mean_D = torch.std_mean(features_ND.double(), dim=0, correction=0)
    return FeatureScale("columns", tuple(mean_D.tolist()), tuple(torch.where(std_D > 0, std_D, 1.0).tolist()))
