"""Plots as batches of layers. Shape letters: N rows, B of a batch, L layers, C bands, D covariates, H and W pixels.

    L = C bands + D covariates (the same at every pixel of a chip) + longitude + latitude

Points without rasters are chips of one pixel without bands: C = 0, H = W = 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.geo.plots import Plots
from mirada.data.geo.scale import LayerScale
from mirada.data.order import epoch_order, step_generator
from mirada.data.text.numbered_batches import NumberedBatches, require_positive
from mirada.errors import MiradaError


def layers_of(plots: Plots) -> Tensor:
    """float32 (N, L, H, W), NaN where there is no data; coordinates in degrees."""
    chips, num = plots.chips, len(plots)
    pixels = np.empty((num, 0, 1, 1), np.float32) if chips is None else chips.pixels_NCHW
    lonlat = plots.lonlat_N2[:, :, None, None] if chips is None else chips.lonlat_N2HW
    size = pixels.shape[2:]
    num_bands, num_covariates = pixels.shape[1], plots.covariates_ND.shape[1]
    layers = np.empty((num, num_bands + num_covariates + 2, *size), np.float32)
    layers[:, :num_bands] = pixels
    layers[:, num_bands:-2] = plots.covariates_ND[:, :, None, None]
    layers[:, -2:] = lonlat
    return torch.from_numpy(layers)


class PlotBatches(NumberedBatches):
    """Shuffled batches of some rows; `turns` shows each chip in one of the eight ways a square lies on itself."""

    def __init__(
        self,
        layers_NLHW: Tensor,
        targets_N: Tensor | np.ndarray,
        rows: Sequence[int] | np.ndarray,
        *,
        batch_size: int,
        scale: LayerScale,
        seed: int = 0,
        turns: bool = False,
    ) -> None:
        super().__init__(seed)
        require_positive(batch_size=batch_size)
        if len(rows) == 0:
            raise MiradaError("there are 0 training rows, expected at least 1.")
        self.layers, self.targets = layers_NLHW, torch.as_tensor(targets_N)
        self.rows = torch.as_tensor(np.asarray(rows, dtype=np.int64))
        self.scale, self.batch_size = scale, batch_size
        self.turns = turns and layers_NLHW.shape[-1] > 1
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        """An incomplete last batch is left out (of this epoch's order), unless it is the only one."""
        return max(1, len(self.rows) // self.batch_size)

    def batch(self, epoch: int, step: int) -> Batch:
        if self._order[0] != epoch:
            self._order = (epoch, epoch_order(len(self.rows), self.seed, epoch))
        rows = self.rows[self._order[1][step * self.batch_size : (step + 1) * self.batch_size]]
        layers = self.scale.apply(self.layers[rows])
        if self.turns:
            layers = turned(layers, step_generator(self.seed, epoch, step))
        return Batch(layers, self.targets[rows], rows)


def plot_evaluation(
    layers_NLHW: Tensor,
    targets_N: Tensor | np.ndarray,
    rows: Sequence[int] | np.ndarray,
    *,
    batch_size: int,
    scale: LayerScale,
) -> Iterator[Batch]:
    """All rows once, in order."""
    require_positive(batch_size=batch_size)
    targets = torch.as_tensor(targets_N)
    wanted = torch.as_tensor(np.asarray(rows, dtype=np.int64))
    for chosen in wanted.split(batch_size) if len(wanted) else ():
        yield Batch(scale.apply(layers_NLHW[chosen]), targets[chosen], chosen)


def turned(layers_BLHW: Tensor, generator: torch.Generator) -> Tensor:
    """Each sample in one of eight ways, drawn for it; coordinates go along with their pixels."""
    ways = torch.randint(8, (len(layers_BLHW),), generator=generator)
    result = torch.empty_like(layers_BLHW)
    for way in ways.unique().tolist():
        chosen = layers_BLHW[ways == way]
        chosen = chosen.flip(-1) if way >= 4 else chosen
        result[ways == way] = chosen.rot90(way % 4, (-2, -1))
    return result
