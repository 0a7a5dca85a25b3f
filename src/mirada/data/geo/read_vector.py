"""Points of GeoPackage and GeoJSON files: coordinates, their CRS, and the attributes as columns of text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mirada.data.geo.column_names import listed
from mirada.data.geo.crs import canonical_crs
from mirada.data.geo.extra import require_maps
from mirada.data.geo.plots import Kind
from mirada.data.tabular import Columns, cell_text
from mirada.errors import MiradaError

ENDINGS: dict[str, Kind] = {".gpkg": "gpkg", ".geojson": "geojson"}


def read_vector(path: Path, crs: str | None) -> tuple[Columns, np.ndarray, str]:
    """Columns, xy (N, 2) with NaN where a row has no point, and the CRS of the file; `crs` is for a file without."""
    require_maps(f"reading {path.name}")
    import geopandas

    layer = _layer_of_points(path)
    try:
        frame = geopandas.read_file(path, layer=layer)
    except Exception as error:  # GDAL tells damaged files apart by message only
        raise MiradaError(f"{path}: not a readable {path.suffix} file ({error}).") from None
    if not len(frame):
        raise MiradaError(f"{path}: the layer {layer} is empty, expected points.")
    kinds = set(frame.geometry.geom_type.dropna()) - {"Point"}
    if kinds:
        raise MiradaError(f"{path}: holds {listed(sorted(kinds))}, expected points; save their centroids instead.")
    points = frame.geometry.where(~frame.geometry.is_empty)
    xy_N2 = np.stack([points.x.to_numpy(), points.y.to_numpy()], axis=1).astype(np.float64)
    cells = frame.drop(columns=frame.geometry.name)
    columns = {str(name): [cell_text(cell) for cell in cells[name]] for name in cells.columns}
    return columns, xy_N2, _crs(path, None if frame.crs is None else frame.crs.to_wkt(), crs)


def _layer_of_points(path: Path) -> str:
    import pyogrio

    try:
        layers = pyogrio.list_layers(path)
    except Exception as error:
        raise MiradaError(f"{path}: not a readable {path.suffix} file ({error}).") from None
    named = [name for name, geometry in layers if geometry is not None]
    points = [name for name, geometry in layers if geometry is not None and "Point" in geometry] or named
    if len(points) != 1:
        found = f"its layers with geometry are {listed(points)}" if points else "it has no layer with geometry"
        raise MiradaError(f"{path}: {found}, expected one layer of points; save that one alone.")
    return points[0]


def _crs(path: Path, found: str | None, given: str | None) -> str:
    if found is None and given is None:
        raise MiradaError(f"{path}: the file does not say which crs its points are in; give it, such as crs=EPSG:4326.")
    if found is None:
        assert given is not None
        return canonical_crs(given)
    crs = canonical_crs(found)
    if given is not None and canonical_crs(given) != crs:
        raise MiradaError(f"{path}: crs is given as {given} but the file says {crs[:40]}; leave crs out.")
    return crs
