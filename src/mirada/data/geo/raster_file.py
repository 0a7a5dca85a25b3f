"""One GeoTIFF, seen on a grid: its own, or another one onto which GDAL warps what is read.

GDAL's warper takes two shortcuts that depend on the window that is read: it interpolates coordinates between a few
exact ones, and it derives the width of its kernel from the window's own scale. Both are switched off here, or else
tiles of a map would not join.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mirada.data.geo.crs import canonical_crs
from mirada.data.geo.grid import Grid
from mirada.errors import MiradaError

EXACT = 1e-9  # pixels by which an interpolated coordinate may be wrong; 0 is no transformer at all to GDAL


class RasterFile:
    """An open file, for one thread."""

    def __init__(self, path: str, grid: Grid) -> None:
        self.path = path
        self.dataset = open_dataset(path)
        self.is_native = grid_of(self.dataset, path).is_same(grid)
        self.pixels = self.dataset if self.is_native else _warped(self.dataset, grid)

    def read(self, indexes: list[int], rows: tuple[int, int], cols: tuple[int, int]) -> np.ndarray:
        """float32 (bands, h, w) of a window inside the grid, NaN where there is no finite number."""
        from rasterio.errors import RasterioError

        try:
            masked = self.pixels.read(indexes, window=(rows, cols), masked=True, out_dtype="float32")
        except RasterioError:
            raise MiradaError(
                f"{self.path}: rows {rows[0]} to {rows[1]} cannot be read: the file is damaged or cut short."
            ) from None
        pixels = masked.filled(np.nan)
        pixels[~np.isfinite(pixels)] = np.nan
        return pixels

    def is_sparse(self, index: int, rows: tuple[int, int], cols: tuple[int, int]) -> bool:
        """Whether the file stores no block for this band in a window inside the grid: nothing is read to know."""
        if not self.is_native or self.dataset.driver != "GTiff" or self.dataset.nodata is None:
            return False
        high, wide = self.dataset.block_shapes[index - 1]
        across = range(cols[0] // wide, -(-cols[1] // wide))
        down = range(rows[0] // high, -(-rows[1] // high))
        return all(
            self.dataset.get_tag_item(f"BLOCK_OFFSET_{x}_{y}", "TIFF", bidx=index) is None for y in down for x in across
        )

    def close(self) -> None:
        self.pixels.close()
        self.dataset.close()


def open_dataset(path: str) -> Any:
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    if not Path(path).exists():
        raise MiradaError(f"{path} does not exist: put the raster there or correct the path.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)  # said by grid_of
            return rasterio.open(path)
    except RasterioError:
        raise MiradaError(f"{path} is not a raster that can be read: expected a GeoTIFF.") from None


def grid_of(dataset: Any, path: str) -> Grid:
    if dataset.crs is None:
        raise MiradaError(
            f"{path} has no coordinate reference system, so nobody knows where it lies: find out which it is and "
            f"write it into the file, as by `rio edit-info --crs EPSG:4326 {Path(path).name}`."
        )
    return Grid(canonical_crs(dataset.crs.to_string()), dataset.transform, (dataset.height, dataset.width))


def _warped(dataset: Any, grid: Grid) -> Any:
    from rasterio.enums import ColorInterp, Resampling
    from rasterio.vrt import WarpedVRT
    from rasterio.warp import calculate_default_transform

    height, width = dataset.height, dataset.width
    native = calculate_default_transform(dataset.crs, grid.crs, width, height, *dataset.bounds)[0]
    # Pixels of the grid per pixel of the file; a finer file is averaged, a coarser one interpolated.
    scale = min(1.0, (abs(native.determinant) / abs(grid.transform.determinant)) ** 0.5)
    alphas = [i for i, meaning in enumerate(dataset.colorinterp, start=1) if meaning == ColorInterp.alpha]
    return WarpedVRT(
        dataset,
        crs=grid.crs,
        transform=grid.transform,
        height=grid.size[0],
        width=grid.size[1],
        resampling=Resampling.bilinear,
        tolerance=EXACT,
        nodata=float("nan"),
        dtype="float32",
        src_alpha=alphas[0] if alphas else 0,
        XSCALE=str(scale),
        YSCALE=str(scale),
    )
