"""Chips around points: the middle pixel holds the point, pixels know their place, points without data are counted."""

import numpy as np
import pytest

pytest.importorskip("rasterio")

from rasterio.transform import from_origin
from tests.geotiffs import numbers, write

from mirada.data.geo.chips import cut_chips
from mirada.data.geo.plots import Plots
from mirada.data.geo.rasters import open_rasters
from mirada.errors import MiradaError

NORTH_WEST = from_origin(10, 50, 0.5, 0.5)  # 7 × 11 pixels: 10° to 15.5° east, 46.5° to 50° north


def points(xy, crs="EPSG:4326"):
    xy = np.array(xy, dtype=np.float64)
    count = len(xy)
    return Plots(
        "plots.csv", "csv", xy, crs, xy, np.zeros(count, np.float32), "richness", np.zeros((count, 0), np.float32)
    )


@pytest.fixture
def raster(tmp_path):
    pixels = numbers(2, 7, 11)
    pixels[1, 3, 3] = np.nan
    return pixels, open_rasters(write(tmp_path / "a.tif", pixels, crs="EPSG:4326", transform=NORTH_WEST, nodata=np.nan))


def test_the_middle_pixel_holds_the_point(raster):
    pixels, rasters = raster
    chips, kept, notes = cut_chips(rasters, points([(12.6, 48.1), (15.4, 46.6), (10.0, 50.0)]), 3)
    assert kept.tolist() == [0, 1, 2] and notes == ()
    assert np.array_equal(chips.pixels_NCHW[0], pixels[:, 2:5, 4:7])
    assert np.array_equal(chips.pixels_NCHW[1, :, :2, :2], pixels[:, 5:, 9:])
    assert np.isnan(chips.pixels_NCHW[1, :, 2]).all() and np.isnan(chips.pixels_NCHW[2, :, :, 0]).all()
    assert np.allclose(chips.lonlat_N2HW[0, :, 1, 1], (12.75, 48.25))
    assert np.allclose(chips.lonlat_N2HW[0, 0, 0], (12.25, 12.75, 13.25))
    assert np.allclose(chips.lonlat_N2HW[0, 1, :, 0], (48.75, 48.25, 47.75))
    assert chips.pixels_NCHW.dtype == chips.lonlat_N2HW.dtype == np.float32
    assert chips.subset(np.array([2])).pixels_NCHW.shape == (1, 2, 3, 3) and chips.chip_size == 3


def test_a_neighbour_without_data_is_nan_and_the_chip_is_kept(raster):
    pixels, rasters = raster
    chips, _, notes = cut_chips(rasters, points([(12.1, 48.1)]), 3)
    assert np.array_equal(chips.pixels_NCHW[0], pixels[:, 2:5, 3:6], equal_nan=True)
    assert notes == () and np.allclose(chips.valid_share(), (1, 8 / 9))


def test_points_outside_and_on_nodata_are_left_out_and_counted(raster):
    _, rasters = raster
    _, kept, notes = cut_chips(rasters, points([(0, 0), (12.6, 48.1), (11.7, 48.3), (99, 48), (12.6, np.inf)]), 5)
    assert kept.tolist() == [1]
    assert notes == (
        "3 of 5 points lie outside the rasters and are left out.",
        "1 of 5 points fall on a pixel without data and are left out.",
    )


def test_longitudes_beyond_180_are_found(tmp_path):
    transform = from_origin(170, 10, 1, 1)
    rasters = open_rasters(write(tmp_path / "a.tif", numbers(1, 20, 20), crs="EPSG:4326", transform=transform))
    chips, kept, _ = cut_chips(rasters, points([(-175.5, 0.5), (175.5, 0.5)]), 1)
    assert kept.tolist() == [0, 1]
    assert np.allclose(chips.lonlat_N2HW[:, 0, 0, 0], (-175.5, 175.5))


def test_no_point_inside_names_both_extents_and_the_reason(raster):
    _, rasters = raster
    with pytest.raises(MiradaError, match=r"x 46.6 to 48.1, y 12.6 to 15.4 .*x 10 to 15.5.*swapped 2 of them"):
        cut_chips(rasters, points([(48.1, 12.6), (46.6, 15.4)]), 3)
    with pytest.raises(MiradaError, match=r"none of the 1 points.*swapped coordinates.*wrong CRS"):
        cut_chips(rasters, points([(1_400_000, 5_200_000)]), 3)


def test_only_nodata_below_the_points_is_an_error(raster):
    with pytest.raises(MiradaError, match=r"all 1 points .* without data"):
        cut_chips(raster[1], points([(11.7, 48.3)]), 3)


@pytest.mark.parametrize("chip_size", [0, 4])
def test_an_even_chip_has_no_middle(raster, chip_size):
    with pytest.raises(MiradaError, match=f"chip_size is {chip_size}: expected an odd number"):
        cut_chips(raster[1], points([(12.6, 48.1)]), chip_size)


def test_plots_of_south_america(real_data):
    """As the data set's description says, 345 have a full window of 9 × 9; all have a valid centre."""
    table = np.genfromtxt(
        real_data("geo/south_america_plant_richness.csv"), delimiter=",", names=True, dtype=None, encoding="utf-8"
    )
    rasters = open_rasters(real_data("geo/americas_bioclim.tif"))
    chips, kept, notes = cut_chips(rasters, points(np.stack([table["longitude"], table["latitude"]], axis=1)), 9)
    assert len(chips) == len(kept) == 703 and notes == ()
    assert np.isfinite(chips.pixels_NCHW).all(axis=(1, 2, 3)).sum() == 345
