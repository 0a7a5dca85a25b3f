"""What a model of a field says of location by itself, and of everything else by itself (partial dependence).

    effect of location at g         (1/S) Σ_i f(x_i, g)           the samples' bands and covariates, all moved to g
    effect of the layers of row i   (1/S) Σ_j f(x_i, g_j)         its own bands and covariates, at the places of others

Where both vary alike, the model uses both; a flat map of the first says that location does not matter to it. Moved
samples are combinations that need not exist, such as alpine climate at sea level: read it as what the model does, not
as what nature does. Shape letters: N rows, S samples, G places, L layers.
"""

from __future__ import annotations

import numpy as np

from mirada.tasks.layers import Predict, middle_pixel


def effect_of_location(
    predict: Predict, layers_NLHW: np.ndarray, lonlat_G2: np.ndarray, *, samples: int = 64, seed: int = 0
) -> np.ndarray:
    """(G,) the mean prediction of some of the rows, moved to each place."""
    drawn_SLHW = layers_NLHW[_drawn(len(layers_NLHW), samples, seed)]
    return np.array([predict(moved(drawn_SLHW, lonlat_2)).mean() for lonlat_2 in np.asarray(lonlat_G2)])


def effect_of_layers(predict: Predict, layers_NLHW: np.ndarray, *, samples: int = 64, seed: int = 0) -> np.ndarray:
    """(N,) the mean prediction of each row, moved to the places of some of the rows."""
    places = middle_pixel(layers_NLHW)[:, -2:][_drawn(len(layers_NLHW), samples, seed)]
    return np.mean([predict(moved(layers_NLHW, lonlat_2)) for lonlat_2 in places], axis=0)


def moved(layers_NLHW: np.ndarray, lonlat_2: np.ndarray) -> np.ndarray:
    """Chips with their middle at another place; pixels keep their distances from the middle, in degrees."""
    moved_NLHW = layers_NLHW.copy()
    offset_N2 = np.asarray(lonlat_2, dtype=layers_NLHW.dtype) - middle_pixel(layers_NLHW)[:, -2:]
    moved_NLHW[:, -2:] += offset_N2[:, :, None, None]
    return moved_NLHW


def grid_around(lonlat_N2: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(height · width, 2) places in rows from north-west to south-east, over what the plots span."""
    height, width = size
    (west, south), (east, north) = lonlat_N2.min(0), lonlat_N2.max(0)
    lat_HW, lon_HW = np.meshgrid(np.linspace(north, south, height), np.linspace(west, east, width), indexing="ij")
    return np.stack([lon_HW.ravel(), lat_HW.ravel()], axis=1)


def _drawn(num_rows: int, samples: int, seed: int) -> np.ndarray:
    if num_rows <= samples:
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(seed).choice(num_rows, samples, replace=False))
