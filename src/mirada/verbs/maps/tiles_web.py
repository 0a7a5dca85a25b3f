"""Square pictures of a map for web pages: 256 pixels a side in Web Mercator, cut from the GeoTIFF when asked for.

    λ = 360 (x + (u + ½) / 256) / 2ᶻ − 180        φ = atan sinh(π (1 − 2 (y + (v + ½) / 256) / 2ᶻ))

Each pixel shows the value of the map at its middle, without interpolation: what one sees is what one would be told.
From afar, values come from the overviews of the file, which are averages.
"""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from mirada.data.geo.crs import LONLAT
from mirada.errors import MiradaError
from mirada.verbs.maps.ramp import coloured
from mirada.verbs.maps.web_map import Bounds, WebMap, version_of, web_map

SIDE = 256
MAX_ZOOM = 22
MOST_READ = 1024  # pixels of the longer side of what is read for one tile
KEPT = 512  # tiles in memory, some kilobytes each


def tile_png(path: Path, band: str, z: int, x: int, y: int) -> bytes:
    """A tile as a PNG; transparent beside the map and where there is no data."""
    return _kept_png(path, version_of(path), band, z, x, y)


@lru_cache(maxsize=KEPT)
def _kept_png(path: Path, version: tuple[int, int], band: str, z: int, x: int, y: int) -> bytes:
    return png_of(tile_picture(web_map(path), band, z, x, y))


def png_of(picture_hw4: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(picture_hw4).save(content, "png")
    return content.getvalue()


def tile_picture(opened: WebMap, band: str, z: int, x: int, y: int) -> np.ndarray:
    """uint8 (256, 256, 4)."""
    opened.require_band(band)
    return coloured(tile_values(opened, band, z, x, y), band, *opened.limits[band])


def tile_values(opened: WebMap, band: str, z: int, x: int, y: int) -> np.ndarray:
    """float32 (256, 256), NaN beside the map and where there is no data."""
    from rasterio.enums import Resampling
    from rasterio.windows import Window

    values_hw = np.full((SIDE, SIDE), np.nan, np.float32)
    lonlat_N2 = tile_lonlat(z, x, y)
    near_N = np.flatnonzero(_is_within(lonlat_N2, opened.bounds))
    if not len(near_N):
        return values_hw
    rows, cols = opened.grid.pixels(lonlat_N2[near_N], LONLAT)
    inside = opened.grid.is_inside(rows, cols)
    near_N, rows, cols = near_N[inside], rows[inside], cols[inside]
    if not len(near_N):
        return values_hw
    factor = _factor(near_N, rows, cols)
    # Begins at a multiple of the factor, so that neighbouring tiles see the same averages.
    (top, bottom), (left, right) = ((int(n.min()) // factor * factor, int(n.max()) + 1) for n in (rows, cols))
    shape = -(-(bottom - top) // factor), -(-(right - left) // factor)
    height, width = opened.grid.size
    height, width = min(shape[0] * factor, height - top), min(shape[1] * factor, width - left)
    with opened.open() as dataset:
        read = opened.read(
            dataset,
            band,
            window=Window(left, top, width, height),
            out_shape=shape,
            resampling=Resampling.nearest if factor == 1 else Resampling.average,
        )
    values_hw.ravel()[near_N] = read[(rows - top) // factor, (cols - left) // factor]
    return values_hw


def tile_lonlat(z: int, x: int, y: int) -> np.ndarray:
    """float64 (256², 2): longitude and latitude of the middles of a tile's pixels, row by row."""
    if not 0 <= z <= MAX_ZOOM or not (0 <= x < 2**z and 0 <= y < 2**z):
        raise MiradaError(f"there is no tile {z}/{x}/{y}: zoom goes from 0 to {MAX_ZOOM}, with 2^zoom tiles a side.")
    middles = (np.arange(SIDE) + 0.5) / SIDE
    lon = 360 * (x + middles) / 2**z - 180
    lat = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (y + middles) / 2**z))))
    return np.stack(np.meshgrid(lon, lat), axis=-1).reshape(-1, 2)


def _is_within(lonlat_N2: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Also what a projection would fold onto the map from the other side of the globe is left out so."""
    west, south, east, north = bounds
    lon_N, lat_N = lonlat_N2.T
    # A little more than the bounds, which were found on a lattice.
    more = 0.05 * max(east - west, north - south)
    is_between = (lon_N - west + more) % 360 <= east - west + 2 * more
    return is_between & (lat_N >= south - more) & (lat_N <= north + more)


def _factor(near_N: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> int:
    """How many pixels of the map lie between neighbours of the tile, as a power of two, rounded down."""
    is_neighbour = (np.diff(near_N) == 1) & (near_N[1:] % SIDE != 0)
    steps = np.hypot(np.diff(rows), np.diff(cols))[is_neighbour]
    apart = float(np.median(steps)) if len(steps) else 1.0
    longest = max(int(np.ptp(rows)), int(np.ptp(cols))) + 1
    factor = 2 ** int(np.log2(max(apart, 1.0)))
    while longest > factor * MOST_READ:  # a tile that a projection stretches
        factor *= 2
    return factor
