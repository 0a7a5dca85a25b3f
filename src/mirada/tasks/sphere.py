"""Places on the earth as points in space, so that near means near across the antimeridian and at the poles.

    u = (cos φ cos λ, cos φ sin λ, sin φ)        λ longitude, φ latitude

Straight distances between such points grow with the distances over ground, so their nearest neighbours are the same.
Shape letters: N places, K neighbours.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree


def unit_vectors(lonlat_N2: np.ndarray) -> np.ndarray:
    """(N, 3) float64 from degrees, longitude first."""
    lon_N, lat_N = np.radians(np.asarray(lonlat_N2, dtype=np.float64)).T
    return np.stack([np.cos(lat_N) * np.cos(lon_N), np.cos(lat_N) * np.sin(lon_N), np.sin(lat_N)], axis=1)


def nearest_others(lonlat_N2: np.ndarray, num_neighbours: int) -> np.ndarray:
    """(N, K) the rows nearest to each row, without itself; rows at the same place are neighbours of each other."""
    place_N3 = unit_vectors(lonlat_N2)
    _, near_NK = cKDTree(place_N3).query(place_N3, num_neighbours + 1)
    other_NK = near_NK != np.arange(len(place_N3))[:, None]
    other_NK[other_NK.all(axis=1), -1] = False  # so many share its place that a row is not among its own nearest
    return near_NK[other_NK].reshape(len(place_N3), num_neighbours)
