"""Small GeoTIFFs for the tests."""

from pathlib import Path

import numpy as np

UTM = "EPSG:32755"


def write(path: Path, pixels: np.ndarray, *, crs=UTM, transform=None, nodata=None, names=(), **options) -> Path:
    """By default pixels of 1 km in UTM, the upper left corner at (500 000, 6 000 000)."""
    import rasterio
    from rasterio.transform import from_origin

    count, height, width = pixels.shape
    profile = {"driver": "GTiff", "dtype": pixels.dtype, "count": count, "height": height, "width": width}
    transform = transform or from_origin(500_000, 6_000_000, 1000, 1000)
    with rasterio.open(path, "w", crs=crs, transform=transform, nodata=nodata, **profile, **options) as file:
        file.write(pixels)
        file.descriptions = names or (None,) * count
    return path


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(1, 100, shape).astype(np.float32)
