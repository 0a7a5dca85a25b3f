"""The chip around every pixel of a raster, as a batch: for models that know chips only."""

from __future__ import annotations

from torch import Tensor


def windows_of(layers_BLHW: Tensor, chip_size: int) -> tuple[Tensor, tuple[int, int, int]]:
    """((B·h·w, L, k, k), (B, h, w)): all windows that lie inside, h = H − k + 1, row by row."""
    windows_BLhwkk = layers_BLHW.unfold(2, chip_size, 1).unfold(3, chip_size, 1)
    batch, _, height, width = windows_BLhwkk.shape[:4]
    return windows_BLhwkk.permute(0, 2, 3, 1, 4, 5).flatten(0, 2), (batch, height, width)
