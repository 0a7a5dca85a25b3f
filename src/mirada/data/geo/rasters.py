"""Bands of one or several GeoTIFFs on one grid, read window by window. Shape letters: C bands, h and w of a window.

Every pixel's value depends on its place alone, never on the window it is read with, so that tiles join without seams.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mirada.data.geo.extra import require_maps
from mirada.data.geo.grid import Grid, extent_words
from mirada.data.geo.raster_file import RasterFile, grid_of, open_dataset
from mirada.errors import MiradaError

Span = tuple[int, int]  # first row or column, and the one after the last; may reach beyond the edges


@dataclass(frozen=True)
class Band:
    name: str
    path: str
    index: int  # in its file, from 1
    scale: float = 1.0  # value = scale · stored + offset, as the file says
    offset: float = 0.0


class OpenFiles(threading.local):
    """Handles of the thread that looks: GDAL's must not be shared. A copy in another process begins with none."""

    def __init__(self) -> None:
        self.by_path: dict[str, RasterFile] = {}

    def __reduce__(self) -> tuple:
        return OpenFiles, ()


@dataclass(frozen=True, eq=False)
class Rasters:
    """Paths and a grid, that of the first raster; files are opened when they are read, once per thread."""

    grid: Grid
    bands: tuple[Band, ...]
    notes: tuple[str, ...] = ()
    _open: OpenFiles = field(default_factory=OpenFiles, repr=False)

    @property
    def crs(self) -> str:
        return self.grid.crs

    @property
    def transform(self) -> Any:
        """The affine map from (column, row) to coordinates."""
        return self.grid.transform

    @property
    def size(self) -> tuple[int, int]:
        return self.grid.size

    @property
    def band_names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(band.path for band in self.bands))

    def read(self, rows: Span, cols: Span) -> np.ndarray:
        """float32 (C, h, w); NaN where there is no data, also beyond the edges."""
        pixels_Chw = np.full((len(self.bands), rows[1] - rows[0], cols[1] - cols[0]), np.nan, np.float32)
        (top, bottom), (left, right) = inner = self._inside(rows, cols)
        if top >= bottom or left >= right:
            return pixels_Chw
        inside = pixels_Chw[:, top - rows[0] : bottom - rows[0], left - cols[0] : right - cols[0]]
        for path in self.paths:
            places = [c for c, band in enumerate(self.bands) if band.path == path]
            inside[places] = self._read_file(path, [self.bands[c] for c in places], *inner)
        return pixels_Chw

    def is_stored(self, rows: Span, cols: Span) -> bool:
        """Whether the files hold anything for this window, by their lists of blocks alone; a window beyond the edges
        holds nothing.
        """
        (top, bottom), (left, right) = inner = self._inside(rows, cols)
        if top >= bottom or left >= right:
            return False
        return not any(self._file(band.path).is_sparse(band.index, *inner) for band in self.bands)

    def has_data(self, rows: Span, cols: Span) -> bool:
        """Whether a pixel of the window may have all its bands: by the lists of blocks, else by the first band."""
        first = replace(self, bands=self.bands[:1])
        return self.is_stored(rows, cols) and not np.isnan(first.read(rows, cols)).any(axis=0).all()

    def lonlat(self, rows: Span, cols: Span) -> np.ndarray:
        """float64 (2, h, w): longitude and latitude of the pixels' centres in degrees, also beyond the edges."""
        row_hw, col_hw = np.meshgrid(np.arange(*rows), np.arange(*cols), indexing="ij")
        return self.grid.lonlat(row_hw, col_hw)

    def with_bands(self, names: Sequence[str]) -> Rasters:
        """The bands that a model asks for, in its order: by name, or, where no name is known, by order with a note."""
        by_name = {band.name: band for band in self.bands}
        missing = [name for name in names if name not in by_name]
        if not missing:
            return replace(self, bands=tuple(by_name[name] for name in names))
        found, wanted = ", ".join(self.band_names), ", ".join(names)
        if len(names) == len(self.bands) == len(missing):
            note = f"The bands {found} are taken for {wanted} in this order, as none has one of these names."
            renamed = [replace(band, name=name) for band, name in zip(self.bands, names, strict=True)]
            return replace(self, bands=tuple(renamed), notes=(*self.notes, note))
        raise MiradaError(
            f"{', '.join(self.paths)}: the model needs the {len(names)} bands {wanted} and these rasters have "
            f"{len(self.bands)}, {found}: {', '.join(missing)} is missing; give the rasters that it was trained with."
        )

    def __enter__(self) -> Rasters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files that this thread opened."""
        while self._open.by_path:
            self._open.by_path.popitem()[1].close()

    def _inside(self, rows: Span, cols: Span) -> tuple[Span, Span]:
        height, width = self.size
        return (max(rows[0], 0), min(rows[1], height)), (max(cols[0], 0), min(cols[1], width))

    def _file(self, path: str) -> RasterFile:
        if path not in self._open.by_path:
            self._open.by_path[path] = RasterFile(path, self.grid)
        return self._open.by_path[path]

    def _read_file(self, path: str, bands: Sequence[Band], rows: Span, cols: Span) -> np.ndarray:
        pixels_Chw = self._file(path).read([band.index for band in bands], rows, cols)
        for pixels_hw, band in zip(pixels_Chw, bands, strict=True):
            if (band.scale, band.offset) != (1.0, 0.0):
                pixels_hw[:] = pixels_hw * band.scale + band.offset
        return pixels_Chw


def open_rasters(paths: str | Path | Iterable[str | Path]) -> Rasters:
    """All bands of these files, on the grid of the first one."""
    require_maps("reading rasters")
    names = list(dict.fromkeys(map(str, [paths] if isinstance(paths, str | Path) else paths)))
    if not names:
        raise MiradaError("no raster was given: give at least one GeoTIFF.")
    grids, bands = [], []
    for name in names:
        with open_dataset(name) as dataset:
            grids.append(grid_of(dataset, name))
            bands += _bands(dataset, name)
    grid, *others = grids
    notes = [_alignment(name, other, names[0], grid) for name, other in zip(names[1:], others, strict=True)]
    return Rasters(grid, _named_apart(bands), tuple(filter(None, notes)))


def _bands(dataset: Any, path: str) -> list[Band]:
    from rasterio.enums import ColorInterp

    seen = [index for index in dataset.indexes if dataset.colorinterp[index - 1] != ColorInterp.alpha]
    stem = Path(path).stem
    unnamed = [stem] if len(seen) == 1 else [f"{stem}_{index}" for index in seen]
    return [
        Band(dataset.descriptions[i - 1] or name, path, i, dataset.scales[i - 1], dataset.offsets[i - 1])
        for i, name in zip(seen, unnamed, strict=True)
    ]


def _named_apart(bands: Sequence[Band]) -> tuple[Band, ...]:
    """Names that several files use are preceded by that of the file."""
    names = [band.name for band in bands]
    apart = [
        replace(band, name=f"{Path(band.path).stem}_{band.name}") if names.count(band.name) > 1 else band
        for band in bands
    ]
    twice = next((band for band in apart if [other.name for other in apart].count(band.name) > 1), None)
    if twice is not None:
        raise MiradaError(f"{twice.path}: two bands are called {twice.name!r}; give every band its own name.")
    return tuple(apart)


def _alignment(path: str, own: Grid, first_path: str, first: Grid) -> str | None:
    """What is done to a raster whose grid is not that of the first one."""
    from rasterio.warp import transform_bounds

    if own.is_same(first):
        return None
    west, south, east, north = transform_bounds(own.crs, first.crs, *own.bounds)
    least_x, least_y, most_x, most_y = first.bounds
    if west >= most_x or east <= least_x or south >= most_y or north <= least_y:
        raise MiradaError(
            f"{path} does not overlap with {first_path}: it covers "
            f"{extent_words(west, south, east, north, first.crs)}, the other {first}; "
            "give rasters of one region, or correct the CRS of one of them."
        )
    return (
        f"{Path(path).name} has another grid ({own.crs}, {own.size[0]} × {own.size[1]} pixels): its values are taken "
        f"as continuous and brought to the grid of {Path(first_path).name} by bilinear interpolation."
    )
