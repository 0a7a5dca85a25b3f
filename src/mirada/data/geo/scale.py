"""x' = (x − μ_l) / σ_l for each band and covariate l, with statistics of the training rows; degrees stay degrees.

Shape letters: B samples, L layers (C bands, D covariates, longitude, latitude), H and W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError

NUM_COORDINATES = 2


@dataclass(frozen=True)
class LayerScale:
    """`mean` and `std` of the bands and covariates; 'raw' leaves them as they are and keeps the statistics."""

    kind: Literal["standard", "raw"]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, layers_BLHW: Tensor) -> Tensor:
        """NaN stays NaN."""
        num = len(self.mean)
        if layers_BLHW.shape[1] != num + NUM_COORDINATES:
            found = layers_BLHW.shape[1] - NUM_COORDINATES
            raise MiradaError(f"there are {found} bands and covariates, expected {num} as in training.")
        if self.kind == "raw":
            return layers_BLHW
        statistics = torch.tensor([self.mean, self.std], dtype=layers_BLHW.dtype, device=layers_BLHW.device)
        mean, std = statistics[:, None, :, None, None]
        return torch.cat([(layers_BLHW[:, :num] - mean) / std, layers_BLHW[:, num:]], dim=1)

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict) -> LayerScale:
        return cls(saved["kind"], tuple(saved["mean"]), tuple(saved["std"]))


def layer_scale(
    layers_NLHW: Tensor, rows: Sequence[int] | np.ndarray, kind: Literal["standard", "raw"] = "standard"
) -> LayerScale:
    """Statistics of these rows without what is missing; a layer that does not vary is shifted, not stretched."""
    if kind not in ("standard", "raw"):
        raise MiradaError(f"the scale of layers is {kind!r}, expected standard or raw.")
    chosen = torch.as_tensor(np.asarray(rows, dtype=np.int64))
    mean, std = [], []
    for layer in range(layers_NLHW.shape[1] - NUM_COORDINATES):
        values = layers_NLHW[chosen, layer].double()
        values = values[~values.isnan()]
        spread, middle = (
            torch.std_mean(values, correction=0) if len(values) else (values.new_ones(()), values.new_zeros(()))
        )
        is_constant = spread <= 1e-6 * middle.abs()
        mean.append(float(middle))
        std.append(1.0 if is_constant else float(spread))
    return LayerScale(kind, tuple(mean), tuple(std))
