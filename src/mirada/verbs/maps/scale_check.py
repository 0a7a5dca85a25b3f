"""Rasters in another unit than those of the training: the map would look fine and be wrong.

|x − μ| > FAR σ for more than MOST of the pixels of a band
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.data.geo.rasters import Rasters
from mirada.data.geo.scale import LayerScale
from mirada.errors import MiradaError
from mirada.verbs.maps.tiles import STEP, Tile

FAR, MOST = 10.0, 0.5
NUM_LOOKS = 16  # squares of STEP pixels with data that are looked at
NUM_TRIES = 400


def require_same_scale(rasters: Rasters, tiles: Sequence[Tile], scale: LayerScale) -> None:
    """Raise if most of the pixels of a band lie far from what the model was trained on."""
    values_CN = _some_pixels(rasters, tiles)
    if not values_CN.shape[1]:
        return
    for name, mean, std, values_N in zip(rasters.band_names, scale.mean, scale.std, values_CN, strict=False):
        share = (np.abs(values_N - mean) > FAR * std).mean()
        if share > MOST:
            raise MiradaError(
                f"band {name}: {share:.0%} of the pixels lie more than {FAR:g} standard deviations from the training "
                f"data (median {np.median(values_N):.4g}; in training mean {mean:.4g}, standard deviation {std:.4g}): "
                "wrong reflectance scale or unit; multiply the raster, or give one like those of the training."
            )


def _some_pixels(rasters: Rasters, tiles: Sequence[Tile]) -> np.ndarray:
    """(C, N) pixels with all bands, from squares spread over the map."""
    found: list[np.ndarray] = []
    order = np.random.default_rng(0).permutation(len(tiles))[:NUM_TRIES]
    for n in order:
        (top, bottom), (left, right) = tiles[n].rows, tiles[n].cols
        for row, col in ((top, left), ((top + bottom - STEP) // 2, (left + right - STEP) // 2)):
            rows, cols = (row, row + STEP), (col, col + STEP)
            if rasters.is_stored(rows, cols):
                values_CN = rasters.read(rows, cols).reshape(len(rasters.bands), -1)
                found.append(values_CN[:, np.isfinite(values_CN).all(axis=0)])
        if sum(values_CN.size > 0 for values_CN in found) >= NUM_LOOKS:
            break
    return np.concatenate([np.zeros((len(rasters.bands), 0), np.float32), *found], axis=1)
