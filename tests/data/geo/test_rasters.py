"""Rasters: bands by name, nodata, windows beyond the edges, other grids; every value independent of its window."""

import pickle
import threading

import numpy as np
import pytest

pytest.importorskip("rasterio")

import pyproj
import rasterio
from rasterio.transform import from_origin
from tests.geotiffs import UTM, numbers, write

from mirada.data.geo.rasters import open_rasters
from mirada.errors import MiradaError


def test_a_window_has_what_the_file_has_and_nan_beyond_the_edges(tmp_path):
    pixels = numbers(2, 7, 11)
    rasters = open_rasters(write(tmp_path / "a.tif", pixels, names=("red", "nir")))
    assert rasters.size == (7, 11) and rasters.band_names == ("red", "nir") and rasters.crs == UTM
    with rasters:
        window = rasters.read((-2, 5), (8, 13))
        assert np.isnan(rasters.read((20, 23), (0, 2))).all()
    assert window.dtype == np.float32 and window.shape == (2, 7, 5)
    assert np.array_equal(window[:, 2:, :3], pixels[:, :5, 8:])
    assert np.isnan(window[:, :2]).all() and np.isnan(window[:, :, 3:]).all()


def test_nodata_of_integers_becomes_nan_and_scale_and_offset_are_applied(tmp_path):
    pixels = np.arange(1, 13, dtype=np.int16).reshape(1, 3, 4)
    pixels[0, 1, 2] = -9999
    path = write(tmp_path / "a.tif", pixels, nodata=-9999)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.5,), (3.0,)
    read = open_rasters(path).read((0, 3), (0, 4))
    assert np.isnan(read[0, 1, 2]) and np.isnan(read).sum() == 1
    assert read[0, 2, 3] == 12 * 0.5 + 3


def test_alpha_is_a_mask_and_no_band(tmp_path):
    pixels = np.full((4, 3, 5), 7, np.uint8)
    pixels[3, 1, 1] = 0
    path = write(tmp_path / "a.tif", pixels, photometric="RGB", alpha="yes")
    rasters = open_rasters(path)
    assert len(rasters.bands) == 3
    assert np.array_equal(np.isnan(rasters.read((0, 3), (0, 5)))[0], pixels[3] == 0)


def test_unnamed_bands_are_called_after_their_file_and_equal_names_are_told_apart(tmp_path):
    one = write(tmp_path / "one.tif", numbers(2, 3, 5))
    two = write(tmp_path / "two.tif", numbers(1, 3, 5))
    assert open_rasters([one, two]).band_names == ("one_1", "one_2", "two")
    for path in (one, two):
        with rasterio.open(path, "r+") as file:
            file.set_band_description(1, "red")
    assert open_rasters([one, two]).band_names == ("one_red", "one_2", "two_red")


def test_lonlat_is_that_of_the_centres(tmp_path):
    rasters = open_rasters(write(tmp_path / "a.tif", numbers(1, 7, 11)))
    lonlat = rasters.lonlat((2, 5), (-1, 4))
    to_lonlat = pyproj.Transformer.from_crs(UTM, "EPSG:4326", always_xy=True)
    expected = to_lonlat.transform(500_000 + 1000 * (-1 + 0.5), 6_000_000 - 1000 * (2 + 0.5))
    assert lonlat.shape == (2, 3, 5)
    assert np.allclose(lonlat[:, 0, 0], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("degrees", [0.037, 0.004])
def test_an_aligned_raster_has_the_same_values_whatever_the_window(tmp_path, degrees):
    """Coarser and finer than the file: GDAL's own settings differ by several units here."""
    first = write(
        tmp_path / "first.tif", numbers(1, 101, 103), crs="EPSG:4326",
        transform=from_origin(147.1, -36.6, degrees, degrees),
    )  # fmt: skip
    other = write(tmp_path / "other.tif", np.random.default_rng(1).integers(1, 255, (1, 400, 500)).astype(np.uint8))
    rasters = open_rasters([first, other])
    assert rasters.size == (101, 103) and "bilinear" in rasters.notes[0]
    whole = rasters.read((0, 101), (0, 103))
    assert np.nanmin(whole[1]) >= 1  # places outside the other raster are missing, not zero
    for top in range(0, 101, 37):
        for left in range(0, 103, 41):
            window = rasters.read((top, top + 37), (left, left + 41))[:, : 101 - top, : 103 - left]
            assert np.array_equal(window, whole[:, top : top + 37, left : left + 41], equal_nan=True)


def test_an_aligned_plane_keeps_its_values(tmp_path):
    """v = x in one CRS, read in another: bilinear interpolation is exact on a plane."""
    east = 500_000 + 1000 * (np.arange(200, dtype=np.float32) + 0.5)
    other = write(tmp_path / "other.tif", np.tile(east, (1, 200, 1)), nodata=-1)
    grid = from_origin(147.3, -36.4, 0.011, 0.011)
    first = write(tmp_path / "first.tif", numbers(1, 53, 59), crs="EPSG:4326", transform=grid)
    rasters = open_rasters([first, other])
    lon, lat = rasters.lonlat((0, 53), (0, 59))
    x, _ = pyproj.Transformer.from_crs("EPSG:4326", UTM, always_xy=True).transform(lon, lat)
    assert np.abs(rasters.read((0, 53), (0, 59))[1] - x).max() < 60  # metres, of pixels of 1000


def test_nodata_stays_nodata_in_an_aligned_raster(tmp_path):
    pixels = np.full((1, 90, 90), 50, np.uint8)
    pixels[:, 30:60, 30:60] = 0
    other = write(tmp_path / "other.tif", pixels, nodata=0)
    half = from_origin(500_000, 6_000_000, 500, 500)
    rasters = open_rasters([write(tmp_path / "first.tif", numbers(1, 180, 180), transform=half), other])
    aligned = rasters.read((0, 180), (0, 180))[1]
    assert np.isnan(aligned[62:118, 62:118]).all() and (aligned[~np.isnan(aligned)] == 50).all()


def test_sparse_blocks_and_empty_bands_have_no_data(tmp_path):
    path = tmp_path / "sparse.tif"
    profile = {"driver": "GTiff", "dtype": "float32", "count": 2, "height": 64, "width": 96, "nodata": float("nan")}
    options = {"tiled": True, "blockxsize": 32, "blockysize": 32, "sparse_ok": True, "interleave": "pixel"}
    transform = from_origin(500_000, 6_000_000, 1000, 1000)
    with rasterio.open(path, "w", crs=UTM, transform=transform, **profile, **options) as file:
        file.write(numbers(2, 32, 32), window=((32, 64), (32, 64)))
        file.write(np.full((2, 32, 32), np.nan, np.float32), window=((0, 32), (64, 96)))
    rasters = open_rasters(path)
    assert rasters._file(str(path)).is_sparse(1, (0, 32), (0, 64))
    has = [[rasters.has_data((top, top + 32), (left, left + 32)) for left in (0, 32, 64)] for top in (0, 32)]
    assert has == [[False, False, False], [False, True, False]]
    assert rasters.has_data((0, 33), (0, 33))
    assert rasters.with_bands([]).has_data((0, 32), (0, 32))  # nothing is asked for, so nothing is missing


def test_a_copy_reads_in_another_thread_and_after_pickling(tmp_path):
    pixels = numbers(1, 7, 11)
    rasters = open_rasters(write(tmp_path / "a.tif", pixels))
    rasters.read((0, 7), (0, 11))
    read = []
    thread = threading.Thread(target=lambda: read.append(rasters.read((0, 7), (0, 11))))
    thread.start()
    thread.join()
    again = pickle.loads(pickle.dumps(rasters))
    assert np.array_equal(read[0], pixels) and np.array_equal(again.read((0, 7), (0, 11)), pixels)


def test_bands_by_name_by_order_and_refused(tmp_path):
    pixels = numbers(3, 3, 5)
    rasters = open_rasters(write(tmp_path / "a.tif", pixels, names=("red", "nir", "swir")))
    swapped = rasters.with_bands(["swir", "red"])
    assert swapped.band_names == ("swir", "red") and not swapped.notes
    assert np.array_equal(swapped.read((0, 3), (0, 5)), pixels[[2, 0]])
    ordered = rasters.with_bands(["b1", "b2", "b3"])
    assert ordered.band_names == ("b1", "b2", "b3") and "in this order" in ordered.notes[0]
    for wanted in (["b1", "b2"], ["red", "nir", "blue"]):  # a wrong count; and an order that would mix up two bands
        with pytest.raises(MiradaError, match=r"needs the \d bands .*red, nir, swir"):
            rasters.with_bands(wanted)


def test_errors_name_the_file_and_what_to_do(tmp_path):
    with pytest.raises(MiradaError, match="does not exist"):
        open_rasters(tmp_path / "none.tif")
    (tmp_path / "text.tif").write_text("no raster")
    with pytest.raises(MiradaError, match=r"text.tif is not a raster"):
        open_rasters(tmp_path / "text.tif")
    with pytest.raises(MiradaError, match="no raster was given"):
        open_rasters([])
    with pytest.raises(MiradaError, match=r"nocrs.tif has no coordinate reference system"):
        open_rasters(write(tmp_path / "nocrs.tif", numbers(1, 3, 5), crs=None))
    near = write(tmp_path / "near.tif", numbers(1, 3, 5))
    far = write(tmp_path / "far.tif", numbers(1, 3, 5), transform=from_origin(900_000, 6_000_000, 1000, 1000))
    with pytest.raises(MiradaError, match=r"far.tif does not overlap with .*near.tif"):
        open_rasters([near, far])


def test_a_file_that_was_cut_short_is_an_error(tmp_path):
    path = write(tmp_path / "a.tif", numbers(1, 300, 300), compress="deflate")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MiradaError, match=r"a.tif.*(cut short|not a raster)"):
        open_rasters(path).read((0, 300), (0, 300))


def test_the_rasters_of_australia_lie_where_they_should(real_data):
    """Corners against pyproj; 56 % of the pixels are sea."""
    rasters = open_rasters([real_data("geo/australia") / f"bio_{n}.tif" for n in (4, 5, 12, 15)])
    height, width = rasters.size
    assert (height, width) == (452, 534) and rasters.crs == "EPSG:7845" and not rasters.notes
    x0, y0, x1, y1 = -2370637.309770401, -1184264.4841489752, 2199516.7040676116, -5052634.5482965065
    to_lonlat = pyproj.Transformer.from_crs("EPSG:7845", "EPSG:4326", always_xy=True)
    step = 8558.340849883918
    for row, col, x, y in (
        (0, 0, x0, y0),
        (0, width - 1, x1 - step, y0),
        (height - 1, width - 1, x1 - step, y1 + step),
    ):
        expected = to_lonlat.transform(x + step / 2, y - step / 2)
        assert np.allclose(rasters.lonlat((row, row + 1), (col, col + 1))[:, 0, 0], expected, rtol=0, atol=1e-7)
    missing = np.isnan(rasters.read((0, height), (0, width))).any(axis=0).mean()
    assert 0.55 < missing < 0.57
