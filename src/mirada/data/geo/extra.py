"""The extra `maps`: what reading rasters, vector files and projected coordinates needs beyond the core install."""

from __future__ import annotations

from importlib.util import find_spec

from mirada.errors import MiradaError

PACKAGES = ("pyproj", "rasterio", "geopandas")


def require_maps(purpose: str) -> None:
    """Raise unless the extra is installed; `purpose` is a noun phrase: 'reading a GeoPackage'."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MiradaError(f'{purpose} needs {", ".join(missing)}; pip install "mirada[maps]".')
