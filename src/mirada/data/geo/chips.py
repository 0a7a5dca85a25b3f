"""Chips: the little squares of raster around points. Shape letters: N chips, C bands, H = W = the size of a chip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mirada.data.geo.grid import extent_words
from mirada.data.geo.rasters import Rasters
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from mirada.data.geo.plots import Plots


@dataclass(frozen=True, eq=False)
class Chips:
    """One chip per point; the middle pixel is the one that holds the point."""

    pixels_NCHW: np.ndarray  # float32, NaN where there is no data
    lonlat_N2HW: np.ndarray  # float32 degrees, longitude first, of the middle of each pixel
    band_names: tuple[str, ...]

    def __post_init__(self) -> None:
        num_chips, num_bands, height, width = self.pixels_NCHW.shape
        assert self.lonlat_N2HW.shape == (num_chips, 2, height, width)
        assert height == width and height % 2 == 1 and num_bands == len(self.band_names)

    def __len__(self) -> int:
        return len(self.pixels_NCHW)

    @property
    def chip_size(self) -> int:
        return self.pixels_NCHW.shape[-1]

    @property
    def num_bands(self) -> int:
        return len(self.band_names)

    def subset(self, rows: np.ndarray) -> Chips:
        return replace(self, pixels_NCHW=self.pixels_NCHW[rows], lonlat_N2HW=self.lonlat_N2HW[rows])

    def valid_share(self) -> np.ndarray:
        """(C,) share of pixels with data, per band."""
        return np.isfinite(self.pixels_NCHW).mean(axis=(0, 2, 3))


def cut_chips(rasters: Rasters, plots: Plots, chip_size: int) -> tuple[Chips, np.ndarray, tuple[str, ...]]:
    """The chips, the rows of `plots` that have one, and what was left out.

    A point outside the raster, or in a pixel where a band has no data, has no chip. What lies around it may be missing:
    NaN, also beyond the edges of the raster.
    """
    if chip_size < 1 or chip_size % 2 == 0:
        raise MiradaError(f"chip_size is {chip_size}: expected an odd number, so that a pixel is in the middle.")
    rows_N, cols_N = rasters.grid.pixels(plots.xy_N2, plots.crs)
    inside = np.flatnonzero(rasters.grid.is_inside(rows_N, cols_N))
    if not len(inside):
        raise MiradaError(_nowhere(rasters, plots))
    pixels_NCHW = _read_around(rasters, rows_N[inside], cols_N[inside], chip_size)
    middle = chip_size // 2
    is_valid_N = np.isfinite(pixels_NCHW[:, :, middle, middle]).all(axis=1)
    kept = inside[is_valid_N]
    if not len(kept):
        raise MiradaError(
            f"{plots.source}: all {len(inside)} points that lie inside the rasters fall on pixels without data; "
            "check the nodata value of the rasters and the CRS of the points."
        )
    dropped = {
        "lie outside the rasters": len(plots) - len(inside),
        "fall on a pixel without data": len(inside) - len(kept),
    }
    notes = tuple(
        f"{count} of {len(plots)} points {where} and are left out." for where, count in dropped.items() if count
    )
    lonlat_N2HW = _lonlat_around(rasters, rows_N[kept], cols_N[kept], chip_size)
    return Chips(pixels_NCHW[is_valid_N], lonlat_N2HW, rasters.band_names), kept, notes


def _read_around(rasters: Rasters, rows_N: np.ndarray, cols_N: np.ndarray, chip_size: int) -> np.ndarray:
    reach = chip_size // 2
    pixels_NCHW = np.empty((len(rows_N), len(rasters.bands), chip_size, chip_size), np.float32)
    for n in np.lexsort((cols_N, rows_N)):  # along the rows of the file, so that its blocks are decoded once
        row, col = int(rows_N[n]), int(cols_N[n])
        pixels_NCHW[n] = rasters.read((row - reach, row + reach + 1), (col - reach, col + reach + 1))
    return pixels_NCHW


def _lonlat_around(rasters: Rasters, rows_N: np.ndarray, cols_N: np.ndarray, chip_size: int) -> np.ndarray:
    steps = np.arange(chip_size) - chip_size // 2
    rows_NHW, cols_NHW = np.broadcast_arrays(
        rows_N[:, None, None] + steps[:, None], cols_N[:, None, None] + steps[None, :]
    )
    lonlat_2NHW = rasters.grid.lonlat(rows_NHW, cols_NHW)
    return np.ascontiguousarray(lonlat_2NHW.swapaxes(0, 1), dtype=np.float32)


def _nowhere(rasters: Rasters, plots: Plots) -> str:
    """Both extents, and what the reason may be."""
    num_swapped = rasters.grid.is_inside(*rasters.grid.pixels(plots.xy_N2[:, ::-1], plots.crs)).sum()
    (west, south), (east, north) = plots.xy_N2.min(axis=0), plots.xy_N2.max(axis=0)
    found = (
        f"{plots.source}: none of the {len(plots)} points lies inside the rasters: the points cover "
        f"{extent_words(west, south, east, north, plots.crs)}, the rasters {rasters.grid}"
    )
    if num_swapped:
        return f"{found}; with x and y swapped {num_swapped} of them would lie inside: swap the two columns."
    return f"{found}; check for swapped coordinates (x is longitude or easting) and for a wrong CRS."
