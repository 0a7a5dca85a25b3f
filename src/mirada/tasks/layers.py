"""Layers as statistics see them: (N, L, H, W) of bands, covariates, longitude, latitude. Letters: N rows, L layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]  # layers (N, L, H, W) to values (N,)


def middle_pixel(layers_NLHW: np.ndarray) -> np.ndarray:
    """(N, L), the pixel that holds the plot."""
    height, width = layers_NLHW.shape[-2:]
    return layers_NLHW[:, :, height // 2, width // 2]
