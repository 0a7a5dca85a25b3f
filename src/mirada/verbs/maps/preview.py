"""A small picture of a map, read from its overviews: what it predicts, how sure it is, where it may be applied."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

from mirada.data.geo.crs import canonical_crs
from mirada.data.geo.grid import Grid
from mirada.train.files import write_atomically

PNG_SIDE = 1000  # pixels of the longer side at most
COLOURS = {"prediction": "viridis", "interval width": "magma", "spread": "magma", "applicability": "cividis"}
OTHER_COLOURS = "viridis"


@dataclass(frozen=True, eq=False)
class Layer:
    name: str
    values: np.ndarray  # float32 (h, w), NaN where there is no data

    @property
    def colours(self) -> str:
        return COLOURS.get(self.name, OTHER_COLOURS)

    @property
    def limits(self) -> tuple[float, float]:
        """The middle 98 % of the values, so that a few odd pixels do not take all colours."""
        found = self.values[np.isfinite(self.values)]
        if not len(found):
            return 0.0, 1.0
        low, high = (float(value) for value in np.percentile(found, (1, 99)))
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def png(self) -> bytes:
        """In colours, transparent where there is no data."""
        coloured = colormaps[self.colours](Normalize(*self.limits, clip=True)(np.nan_to_num(self.values)), bytes=True)
        coloured[..., 3] = np.where(np.isfinite(self.values), 255, 0)
        content = io.BytesIO()
        Image.fromarray(coloured).save(content, "png")
        return content.getvalue()


@dataclass(frozen=True, eq=False)
class SmallMap:
    """The map at a lower resolution, and the grid that it has at its own."""

    name: str
    grid: Grid
    layers: tuple[Layer, ...]


def read_small(path: Path, side: int) -> SmallMap:
    """Prediction, width of the interval, and the other bands, averaged down to `side` pixels at most."""
    import rasterio
    from rasterio.enums import Resampling

    with rasterio.open(path) as file:
        factor = max(1.0, max(file.shape) / side)
        size = tuple(max(1, round(length / factor)) for length in file.shape)
        bands = file.read(out_shape=(file.count, *size), resampling=Resampling.average, masked=True).filled(np.nan)
        by_name = dict(zip(file.descriptions, bands, strict=True))
        grid = Grid(canonical_crs(file.crs.to_string()), file.transform, file.shape)
    if {"low", "high"} <= by_name.keys():
        by_name["interval width"] = by_name.pop("high") - by_name.pop("low")
    order = [*(name for name in COLOURS if name in by_name), *(name for name in by_name if name not in COLOURS)]
    return SmallMap(path.stem, grid, tuple(Layer(name, by_name[name]) for name in order))


def write_png(path: Path) -> Path:
    """Beside the map, with a colour bar for each layer."""
    small = read_small(path, PNG_SIDE)
    count = len(small.layers)
    figure = Figure(figsize=(6 * count, 5), layout="constrained", dpi=120)
    FigureCanvasAgg(figure)
    west, south, east, north = small.grid.bounds
    for axes, layer in zip(figure.subplots(1, count, squeeze=False)[0], small.layers, strict=True):
        low, high = layer.limits
        extent = (west, east, south, north)
        image = axes.imshow(
            layer.values, cmap=layer.colours, vmin=low, vmax=high, extent=extent, interpolation="nearest"
        )
        figure.colorbar(image, ax=axes, extend="both", shrink=0.8)
        axes.set_title(f"{small.name}: {layer.name}", parse_math=False)
        axes.ticklabel_format(useOffset=False, style="plain")
        axes.tick_params(labelsize=7)
    content = io.BytesIO()
    figure.savefig(content, format="png")
    picture = path.with_suffix(".png")
    write_atomically(picture, lambda partial: partial.write_bytes(content.getvalue()))
    return picture
