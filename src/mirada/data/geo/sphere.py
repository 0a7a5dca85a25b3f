"""Distances and an equal-area map on a sphere of the Earth's mean radius, without a library of projections.

    v = (cos φ cos λ, cos φ sin λ, sin φ)                 the unit vector of longitude λ, latitude φ
    |v − w| = 2 sin(d / 2R)                               the chord of a great-circle distance d

Chords grow with distance and know neither poles nor antimeridian, so neighbours are searched among unit vectors.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

EARTH_KM = 6371.0088  # mean radius; the ellipsoid deviates by less than 0.6 %
KM_PER_DEGREE = EARTH_KM * np.pi / 180


def unit_vectors(lonlat_N2: np.ndarray) -> np.ndarray:
    """(N, 3)."""
    lon_N, lat_N = np.radians(lonlat_N2.astype(np.float64)).T
    return np.stack([np.cos(lat_N) * np.cos(lon_N), np.cos(lat_N) * np.sin(lon_N), np.sin(lat_N)], axis=1)


def distance_km(from_N2: np.ndarray, to_N2: np.ndarray) -> np.ndarray:
    """(N,) great-circle distances, row by row; either side may also be one place (2,)."""
    return _km(np.linalg.norm(unit_vectors(np.atleast_2d(from_N2)) - unit_vectors(np.atleast_2d(to_N2)), axis=1))


def nearest_km(from_N2: np.ndarray, to_N2: np.ndarray) -> np.ndarray:
    """(N,) distance from each place to the nearest of the others."""
    return _km(cKDTree(unit_vectors(to_N2)).query(unit_vectors(from_N2))[0])


def neighbour_km(lonlat_N2: np.ndarray) -> np.ndarray:
    """(N,) distance from each place to its nearest neighbour in the same list."""
    vectors_N3 = unit_vectors(lonlat_N2)
    return _km(cKDTree(vectors_N3).query(vectors_N3, k=2)[0][:, 1])


def equal_area_km(lonlat_N2: np.ndarray) -> np.ndarray:
    """(N, 2) km to the east and north of the middle of these places, by Lambert's azimuthal equal-area projection.

    (x, y) = R √(2 / (1 + v·c)) (v·e, v·n), with c the middle and e, n its directions to the east and north.
    """
    vectors_N3 = unit_vectors(lonlat_N2)
    middle_3 = vectors_N3.mean(axis=0)
    length = np.linalg.norm(middle_3)
    centre_3 = middle_3 / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])  # all around the globe: any will do
    east_3 = np.array([-centre_3[1], centre_3[0], 0.0])
    east_3 = east_3 / np.linalg.norm(east_3) if np.linalg.norm(east_3) > 1e-9 else np.array([0.0, 1.0, 0.0])
    north_3 = np.cross(centre_3, east_3)
    beyond_N = np.maximum(1 + vectors_N3 @ centre_3, 1e-12)  # the antipode has no image
    return EARTH_KM * np.sqrt(2 / beyond_N)[:, None] * (vectors_N3 @ np.stack([east_3, north_3], axis=1))


def _km(chord: np.ndarray) -> np.ndarray:
    return 2 * EARTH_KM * np.arcsin(np.minimum(chord / 2, 1))
