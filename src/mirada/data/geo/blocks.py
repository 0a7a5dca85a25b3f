"""Blocks of the Earth's surface: near samples share a block, so holding out blocks holds out neighbourhoods.

    band = ⌊d_south / b⌋,   cell = ⌊(λ + 180°) / 360° · n⌋,   n = round(2πR cos φ_band / b)

with d_south the distance to the south pole, b the side of a block in km and φ_band the middle of the band. Blocks are
about b × b everywhere, of about equal area, and a whole number of them goes round the globe: no seam at the
antimeridian, none at the poles. A size in degrees ('3deg') makes cells of the plain grid of longitude and latitude.
"""

from __future__ import annotations

import re

import numpy as np

from mirada.data.geo.plots import Plots
from mirada.data.geo.sphere import EARTH_KM, KM_PER_DEGREE
from mirada.errors import MiradaError

Block = float | int | str

ENOUGH_BLOCKS, ROWS_PER_BLOCK, LEAST_BLOCKS = 40, 5, 5
LARGEST_KM = 1000.0
ROUND_KM = tuple(step * 10.0**power for power in range(2, -4, -1) for step in (5, 2, 1))  # 500 km down to 1 m


def blocks_of(plots: Plots, block: Block) -> np.ndarray:
    """(N,) int64: the number of each row's block, from 0 on. block: a side in km (100, '100km') or degrees ('3deg')."""
    return _blocks(plots.lonlat_N2, *_parsed(block))


def auto_block_km(plots: Plots) -> float:
    """The largest round side, up to 1000 km, at which the plots fill 40 blocks (a fifth of the rows, if these are few).

    Large blocks keep near plots together, and many of them are needed to compare folds: for 19,000 plots all over New
    Zealand this is 100 km.
    """
    enough = min(ENOUGH_BLOCKS, max(LEAST_BLOCKS, len(plots) // ROWS_PER_BLOCK))
    for side_km in (LARGEST_KM, *ROUND_KM):
        if len(np.unique(_blocks(plots.lonlat_N2, side_km, "km"))) >= enough:
            return side_km
    return ROUND_KM[-1]


def block_km(block: Block) -> float:
    """The side in km; that of degrees is measured along a meridian."""
    size, unit = _parsed(block)
    return size * KM_PER_DEGREE if unit == "deg" else size


def _parsed(block: Block) -> tuple[float, str]:
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(km|deg|°)?\s*", str(block).lower())
    if found is None or float(found[1]) <= 0:
        raise MiradaError(f"block is {block!r}, expected a side in km, such as 100, or in degrees, such as 3deg.")
    return float(found[1]), "km" if found[2] in (None, "km") else "deg"


def _blocks(lonlat_N2: np.ndarray, size: float, unit: str) -> np.ndarray:
    lon_N, lat_N = lonlat_N2.T
    if unit == "deg":
        band_N, cell_N = np.floor((lat_N + 90) / size), np.floor((lon_N + 180) % 360 / size)
    else:
        band_N = np.floor((lat_N + 90) * KM_PER_DEGREE / size)
        middle_N = np.radians(np.minimum((band_N + 0.5) * size / KM_PER_DEGREE, 180) - 90)
        cells_N = np.maximum(1, np.rint(2 * np.pi * EARTH_KM * np.cos(middle_N) / size))
        cell_N = np.floor((lon_N + 180) % 360 / 360 * cells_N)
    return np.unique(np.stack([band_N, cell_N]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
