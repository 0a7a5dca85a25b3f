"""An interactive page of a map: one file, no network, no library; pan, zoom, layers, coordinates and values."""

from __future__ import annotations

import base64
from pathlib import Path

import jinja2
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from mirada.data.geo.grid import Grid
from mirada.report.style import data_uri
from mirada.train.files import write_text
from mirada.verbs.maps.preview import Layer, SmallMap, read_small

IMAGE_SIDE, VALUE_SIDE = 1400, 350  # pixels of the longer side at most
LATTICE = 33  # points per side at which longitude and latitude are known; between them they are interpolated
NUM_STOPS = 12  # colours of a legend


def write_page(path: Path) -> Path:
    page = path.with_suffix(".html")
    write_text(page, page_of(read_small(path, IMAGE_SIDE), read_small(path, VALUE_SIDE)))
    return page


def page_of(images: SmallMap, values: SmallMap) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    layers = [_described(image, small) for image, small in zip(images.layers, values.layers, strict=True)]
    height, width = images.grid.size
    facts = {
        "size": [height, width],
        "crs": images.grid.crs if len(images.grid.crs) < 20 else "own CRS",
        "transform": list(images.grid.transform[:6]),
        "lattice": LATTICE,
        "lonlat": _floats(_lattice(images.grid)),
        "layers": layers,
    }
    return environment.get_template("preview.html.j2").render(name=images.name, facts=facts)


def _described(image: Layer, small: Layer) -> dict:
    low, high = image.limits
    stops = [to_hex(colormaps[image.colours](share)) for share in np.linspace(0, 1, NUM_STOPS)]
    return {
        "name": image.name,
        "image": data_uri(image.png(), "png"),
        "size": list(small.values.shape),
        "values": _floats(small.values),
        "low": low,
        "high": high,
        "stops": stops,
    }


def _lattice(grid: Grid) -> np.ndarray:
    """(2, LATTICE, LATTICE) longitude and latitude from corner to corner, without a jump at 180°."""
    height, width = grid.size
    rows, cols = np.meshgrid(np.linspace(0, height, LATTICE) - 0.5, np.linspace(0, width, LATTICE) - 0.5, indexing="ij")
    lon, lat = grid.lonlat(rows, cols)
    return np.stack([np.unwrap(np.unwrap(lon, period=360, axis=0), period=360, axis=1), lat])


def _floats(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")
