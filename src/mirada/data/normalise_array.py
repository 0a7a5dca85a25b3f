"""Normalisation of pixels where torch is not loaded: the same sums as Normalisation.apply of normalise.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def normalise_array(pixels_NCHW: np.ndarray, mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """uint8 to float32: x' = (x / 255 - mean) / std, per channel."""
    mean_C11, std_C11 = (np.asarray(numbers, np.float32).reshape(-1, 1, 1) for numbers in (mean, std))
    normalised = pixels_NCHW.astype(np.float32)
    normalised *= 1 / (255 * std_C11)
    normalised -= mean_C11 / std_C11
    return normalised
