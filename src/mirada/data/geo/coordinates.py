"""Loud checks of coordinates: swapped axes, degrees among metres, a CRS that cannot be the right one."""

from __future__ import annotations

import numpy as np

from mirada.data.geo.crs import is_degrees, is_in_area, to_lonlat
from mirada.errors import MiradaError

CLEARLY_METRES = 10_000
MOST, SOME = 0.5, 0.1  # shares of the points


def checked_lonlat(
    xy_N2: np.ndarray, crs: str, columns: tuple[str, str], where: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """(N, 2) degrees of EPSG:4326, and notes; `columns` are what the two coordinates are called in messages."""
    in_degrees = is_degrees(crs)
    if in_degrees:
        _require_degrees(xy_N2, columns, where)
    else:
        _require_metres(xy_N2, crs, where)
    lonlat_N2 = to_lonlat(xy_N2, crs)
    is_outside_N = ~is_in_area(lonlat_N2, crs)
    if not in_degrees and is_outside_N.mean() > MOST and is_in_area(to_lonlat(xy_N2[:, ::-1], crs), crs).mean() > MOST:
        raise MiradaError(
            f"{where}: {columns[0]} and {columns[1]} look swapped, for only exchanged do the points lie where "
            f"{_short(crs)} is used; {columns[0]} must grow to the east and {columns[1]} to the north."
        )
    if not np.isfinite(lonlat_N2).all():
        row = int(np.flatnonzero(~np.isfinite(lonlat_N2).all(axis=1))[0])
        raise MiradaError(f"{where}: {_shown(xy_N2[row])} is no place in {_short(crs)}; check the crs and the point.")
    if is_outside_N.mean() > SOME:
        outside = f"{where}: {is_outside_N.sum():,} of {len(xy_N2):,} points lie outside the area that {_short(crs)}"
        return lonlat_N2, (f"{outside} is made for; check the crs.",)
    return lonlat_N2, ()


def _require_degrees(xy_N2: np.ndarray, columns: tuple[str, str], where: str) -> None:
    furthest_x, furthest_y = np.abs(xy_N2).max(axis=0)
    if furthest_x <= 90 < furthest_y <= 360:
        raise MiradaError(
            f"{where}: latitude ({columns[1]}) reaches {furthest_y:g} while longitude ({columns[0]}) stays within 90; "
            "the two look swapped, so exchange the columns."
        )
    is_wrong_N = (np.abs(xy_N2[:, 0]) > 360) | (np.abs(xy_N2[:, 1]) > 90)
    if not is_wrong_N.any():
        return
    first = _shown(xy_N2[np.flatnonzero(is_wrong_N)[0]])
    if is_wrong_N.mean() > MOST:
        raise MiradaError(
            f"{where}: {columns[0]} and {columns[1]} are no degrees (such as {first}); give the crs they are in."
        )
    raise MiradaError(
        f"{where}: {is_wrong_N.sum():,} of {len(xy_N2):,} points are no degrees (such as {first}), the others are; "
        "bring them into one crs, or remove them."
    )


def _require_metres(xy_N2: np.ndarray, crs: str, where: str) -> None:
    is_wrong_N = (np.abs(xy_N2[:, 0]) <= 180) & (np.abs(xy_N2[:, 1]) <= 90)
    if is_wrong_N.all():
        raise MiradaError(
            f"{where}: {_short(crs)} counts in metres, but all coordinates could be degrees (such as "
            f"{_shown(xy_N2[0])}); give the crs they are in, or EPSG:4326 if they are longitude and latitude."
        )
    if is_wrong_N.any() and np.median(np.abs(xy_N2[~is_wrong_N]).max(axis=1)) > CLEARLY_METRES:
        first = _shown(xy_N2[np.flatnonzero(is_wrong_N)[0]])
        raise MiradaError(
            f"{where}: {is_wrong_N.sum():,} of {len(xy_N2):,} points look like degrees (such as {first}) among the "
            f"metres of {_short(crs)}; bring them into one crs, or remove them."
        )


def _shown(xy_2: np.ndarray) -> str:
    return f"({xy_2[0]:.9g}, {xy_2[1]:.9g})"


def _short(crs: str) -> str:
    """WKT is a page long."""
    return crs if len(crs) < 40 else "its crs"
