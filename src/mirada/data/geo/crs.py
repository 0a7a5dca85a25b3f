"""Coordinate reference systems: their names, and the way from their coordinates to longitude and latitude."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mirada.data.geo.extra import require_maps
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from pyproj import CRS

LONLAT = "EPSG:4326"
_LONLAT_NAMES = {"epsg:4326", "4326", "wgs84", "wgs 84", "ogc:crs84", "crs84"}  # known without pyproj


def canonical_crs(crs: str) -> str:
    """'epsg:27200' or '27200' -> 'EPSG:27200'; a definition that no authority has numbered stays WKT."""
    if str(crs).strip().lower() in _LONLAT_NAMES:
        return LONLAT
    known = _known(crs)
    authority = known.to_authority()
    name = ":".join(authority) if authority else known.to_wkt()
    return LONLAT if name.lower() in _LONLAT_NAMES else name


def is_degrees(crs: str) -> bool:
    return crs == LONLAT or _known(crs).is_geographic


def to_lonlat(xy_N2: np.ndarray, crs: str) -> np.ndarray:
    """(N, 2) longitude in −180..180 and latitude in degrees of EPSG:4326; infinite where `crs` has no such place."""
    if crs == LONLAT:
        lon_N = xy_N2[:, 0]
        return np.stack([np.where(np.abs(lon_N) <= 180, lon_N, (lon_N + 180) % 360 - 180), xy_N2[:, 1]], axis=1)
    from pyproj import Transformer

    transformer = Transformer.from_crs(_known(crs), LONLAT, always_xy=True)
    return np.stack(transformer.transform(xy_N2[:, 0], xy_N2[:, 1]), axis=1)


def is_in_area(lonlat_N2: np.ndarray, crs: str) -> np.ndarray:
    """(N,) whether each place lies where `crs` is meant to be used; everywhere, if it does not say."""
    area = None if crs == LONLAT else _known(crs).area_of_use
    if area is None:
        return np.ones(len(lonlat_N2), dtype=bool)
    with np.errstate(invalid="ignore"):  # infinite places are in no area
        is_between = (lonlat_N2[:, 0] - area.west) % 360 <= ((area.east - area.west) % 360 or 360)
    return is_between & (lonlat_N2[:, 1] >= area.south) & (lonlat_N2[:, 1] <= area.north)


def _known(crs: str) -> CRS:
    require_maps(f"crs {crs}")
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(int(crs) if str(crs).isdigit() else crs)
    except CRSError:
        raise MiradaError(
            f"crs is {crs!r}, which is not known; expected a code such as EPSG:4326 (degrees) or EPSG:32613."
        ) from None
