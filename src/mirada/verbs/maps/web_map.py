"""A map as a web page sees it: where it lies in degrees, its bands, and what their colours stand for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mirada.data.geo.crs import LONLAT, is_degrees
from mirada.data.geo.grid import Grid
from mirada.data.geo.raster_file import grid_of
from mirada.errors import MiradaError
from mirada.verbs.maps.ramp import limits
from mirada.verbs.maps.tags import MapTags, tags_of

WIDTH = "interval width"  # high − low, which no band holds
FIRST = ("prediction", WIDTH, "spread", "applicability", "low", "high")
LIMITS_SIDE = 512  # pixels of the overview that limits are taken from
LATTICE = 65  # points per side at which longitude and latitude are looked up
WHOLE_CIRCLE = 30.0  # degrees: a map that leaves no larger gap goes around the globe

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class WebMap:
    """Facts that are found once; `path` is opened again by whoever reads, as handles belong to one thread."""

    path: Path
    grid: Grid
    index_of: dict[str, int]  # of the bands of the file, from 1
    limits: dict[str, tuple[float, float]]  # of all bands, also of those that are computed
    bounds: Bounds  # west, south, east, north in degrees; east may be beyond 180
    tags: MapTags | None

    @property
    def bands(self) -> tuple[str, ...]:
        return tuple(self.limits)

    def require_band(self, band: str) -> None:
        if band not in self.limits:
            raise MiradaError(f"{self.path.name} has no band {band!r}; it has {', '.join(self.bands)}.")

    def open(self) -> Any:
        return _opened(self.path)

    def read(self, dataset: Any, band: str, **options: Any) -> np.ndarray:
        """float32 values of a band, NaN where there is no data; options of rasterio's read."""
        if band == WIDTH:
            return self.read(dataset, "high", **options) - self.read(dataset, "low", **options)
        values = dataset.read(self.index_of[band], masked=True, out_dtype="float32", **options).filled(np.nan)
        values[~np.isfinite(values)] = np.nan
        return values


def web_map(path: Path) -> WebMap:
    """Opened once as long as the file stays the same. Raises a MiradaError if it is not a map."""
    return _web_map(path, version_of(path))


def version_of(path: Path) -> tuple[int, int]:
    """Of a file that may be written again."""
    try:
        status = path.stat()
    except OSError:
        raise MiradaError(f"{path.name}: there is no such map.") from None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _web_map(path: Path, version: tuple[int, int]) -> WebMap:
    from rasterio.enums import Resampling

    with _opened(path) as dataset:
        index_of = {name: n for n, name in enumerate(dataset.descriptions, start=1) if name}
        if "prediction" not in index_of:
            raise MiradaError(f"{path.name} is not a map made by `mirada map`: no band is called prediction.")
        grid = grid_of(dataset, str(path))
        found = WebMap(path, grid, index_of, {}, bounds_of(grid), tags_of(dataset))
        names = [*index_of, *([WIDTH] if {"low", "high"} <= index_of.keys() else [])]
        factor = max(1.0, max(grid.size) / LIMITS_SIDE)
        shape = tuple(max(1, round(side / factor)) for side in grid.size)
        for name in sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)):
            values = found.read(dataset, name, out_shape=shape, resampling=Resampling.average)
            found.limits[name] = limits(name, values)
    return found


def _opened(path: Path) -> Any:
    """As a GeoTIFF and nothing else: a file that is called so may hold a list of others, near or far."""
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)  # said by grid_of
            return rasterio.open(path, driver="GTiff")
    except RasterioError:
        raise MiradaError(f"{path.name} is not a GeoTIFF that can be read.") from None


def bounds_of(grid: Grid) -> Bounds:
    """West, south, east, north of all pixels in degrees; across the antimeridian east is beyond 180."""
    height, width = grid.size
    rows, cols = np.meshgrid(np.linspace(0, height, LATTICE) - 0.5, np.linspace(0, width, LATTICE) - 0.5, indexing="ij")
    lon, lat = grid.lonlat(rows, cols)
    is_somewhere = np.isfinite(lon) & np.isfinite(lat)
    if not is_somewhere.any():
        raise MiradaError("the map lies at no place on Earth: its coordinate reference system does not fit.")
    south, north = float(lat[is_somewhere].min()), float(lat[is_somewhere].max())
    for pole in (-90.0, 90.0):
        if _holds(grid, pole):
            south, north = min(south, pole), max(north, pole)
    west, east = grid.bounds[0::2] if is_degrees(grid.crs) else _longitudes(lon[is_somewhere])
    if east - west >= 360 or _holds(grid, -90.0) or _holds(grid, 90.0):
        west, east = -180.0, 180.0
    turns = 360 * np.floor((west + 180) / 360)
    return float(west - turns), max(south, -90.0), float(east - turns), min(north, 90.0)


def _holds(grid: Grid, pole: float) -> bool:
    """Whether a pole lies inside a map in metres: around it all longitudes are there."""
    if is_degrees(grid.crs):
        return False
    return bool(grid.is_inside(*grid.pixels(np.array([[0.0, pole]]), LONLAT))[0])


def _longitudes(lon: np.ndarray) -> tuple[float, float]:
    """The shortest arc that holds these: what is left when the widest gap is taken out of the circle."""
    ordered = np.sort(lon.ravel() % 360)
    gaps = np.diff(ordered, append=ordered[0] + 360)
    widest = int(gaps.argmax())
    if gaps[widest] < WHOLE_CIRCLE:
        return -180.0, 180.0
    west = float(ordered[(widest + 1) % len(ordered)])
    return west, west + 360 - float(gaps[widest])
