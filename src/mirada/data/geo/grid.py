"""The grid of a raster: where its pixels lie.

(x, y) = A (column + ½, row + ½)          the middle of a pixel, A the affine map of the file
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirada.data.geo.crs import LONLAT, is_degrees, to_lonlat

SAME = 0.01  # of a pixel: grids whose corners differ by less are one


@dataclass(frozen=True)
class Grid:
    crs: str  # 'EPSG:7845', or WKT where no authority has numbered it
    transform: Any  # affine.Affine, from (column, row) to (x, y)
    size: tuple[int, int]  # (height, width)

    def lonlat(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """float64 (2, *shape of rows): longitude and latitude in degrees of the middle of these pixels."""
        x, y = _applied(self.transform, cols + 0.5, rows + 0.5)
        lonlat_N2 = to_lonlat(np.stack([x.ravel(), y.ravel()], axis=1), self.crs)
        return lonlat_N2.T.reshape(2, *rows.shape)

    def pixels(self, xy_N2: np.ndarray, crs: str) -> tuple[np.ndarray, np.ndarray]:
        """int64 rows and columns (N,) of the pixels that hold these places, also beyond the edges; −1 if nowhere."""
        xy_2N = _transformed(xy_N2, crs, self.crs)
        is_somewhere_N = np.isfinite(xy_2N).all(axis=0)
        x_N, y_N = np.where(is_somewhere_N, xy_2N, 0.0)
        if is_degrees(self.crs):  # 190° is −170°, whichever the raster says
            west, _, east, _ = self.bounds
            x_N = np.where((x_N < west) | (x_N > east), (x_N - west) % 360 + west, x_N)
        cols_N, rows_N = (np.floor(place).astype(np.int64) for place in _applied(~self.transform, x_N, y_N))
        return np.where(is_somewhere_N, rows_N, -1), np.where(is_somewhere_N, cols_N, -1)

    def is_inside(self, rows_N: np.ndarray, cols_N: np.ndarray) -> np.ndarray:
        height, width = self.size
        return (rows_N >= 0) & (rows_N < height) & (cols_N >= 0) & (cols_N < width)

    @property
    def corners(self) -> np.ndarray:
        """(4, 2) x, y of the outer corners: upper left, upper right, lower left, lower right."""
        height, width = self.size
        cols, rows = np.array([0, width, 0, width]), np.array([0, 0, height, height])
        return np.stack(_applied(self.transform, cols, rows), axis=1)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north in the grid's own coordinates."""
        west, south = self.corners.min(axis=0)
        east, north = self.corners.max(axis=0)
        return float(west), float(south), float(east), float(north)

    def is_same(self, other: Grid) -> bool:
        """Whether the pixels of the two lie on each other."""
        if (self.crs, self.size) != (other.crs, other.size):
            return False
        own, others = (np.stack(_applied(~self.transform, *grid.corners.T)) for grid in (self, other))
        return bool(np.abs(own - others).max() < SAME)

    def __str__(self) -> str:
        return extent_words(*self.bounds, self.crs)


def extent_words(west: float, south: float, east: float, north: float, crs: str) -> str:
    """'x 140.5 to 150, y −40 to −30 (EPSG:4326)'."""
    return f"x {west:.6g} to {east:.6g}, y {south:.6g} to {north:.6g} ({crs if len(crs) < 20 else 'a CRS of its own'})"


def _applied(transform: Any, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b, c, d, e, f = transform[:6]  # the operator for this is * in old versions of affine and @ in new ones
    return a * x + b * y + c, d * x + e * y + f


def _transformed(xy_N2: np.ndarray, crs: str, to_crs: str) -> np.ndarray:
    if crs == to_crs:
        return xy_N2.T
    if to_crs == LONLAT:
        return to_lonlat(xy_N2, crs).T
    from pyproj import Transformer

    return np.stack(Transformer.from_crs(crs, to_crs, always_xy=True).transform(*xy_N2.T))
