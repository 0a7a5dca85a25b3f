import numpy as np
import pytest

from mirada.data.geo.rasters import open_rasters
from tests.geotiffs import numbers, write


@pytest.fixture
def rasters(tmp_path):
    return make_rasters(tmp_path)


def make_rasters(folder):
    """Two bands of 150 × 210 pixels, which no tile divides; a corner and a few pixels without data."""
    pytest.importorskip("rasterio")
    pixels = numbers(2, 150, 210)
    pixels[:, 100:, :70] = np.nan
    pixels[1, 20:23, 30:41] = np.nan
    return open_rasters(write(folder / "pixels.tif", pixels, nodata=np.nan, names=("red", "nir")))
