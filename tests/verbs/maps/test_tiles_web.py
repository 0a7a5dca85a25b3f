"""Tiles for web pages: each pixel has the colour of the raster's value at its middle."""

import io

import numpy as np
import pytest

pytest.importorskip("rasterio")

from PIL import Image
from pyproj import Transformer
from rasterio.transform import from_origin

from mirada.errors import MiradaError
from mirada.verbs.maps.ramp import coloured, limits, ramp, stops
from mirada.verbs.maps.tiles_web import MAX_ZOOM, SIDE, tile_lonlat, tile_picture, tile_png, tile_values
from mirada.verbs.maps.web_map import WIDTH, web_map
from tests.geotiffs import UTM, numbers, write

NAMES = ("prediction", "low", "high", "applicability")


def a_map(folder, size=(90, 150), name="map.tif", **place):
    pixels = numbers(4, *size)
    pixels[1] = pixels[0] - 3
    pixels[2] = pixels[0] + 4
    pixels[3] /= 50
    pixels[:, 60:, :40] = np.nan
    return write(folder / name, pixels, nodata=np.nan, names=NAMES, **place), pixels


def tile_of(longitude, latitude, z):
    x = (longitude + 180) / 360
    y = (1 - np.arcsinh(np.tan(np.radians(latitude))) / np.pi) / 2
    return z, int(x * 2**z), int(y * 2**z)


def test_a_pixel_of_a_tile_is_the_value_of_a_raster_in_metres(tmp_path):
    """By another way: each pixel's middle is projected by pyproj, and the array is indexed."""
    path, pixels = a_map(tmp_path)
    z, x, y = tile_of(147.8, -36.5, 10)
    values = tile_values(web_map(path), "prediction", z, x, y)
    lonlat = tile_lonlat(z, x, y).reshape(SIDE, SIDE, 2)
    to_metres = Transformer.from_crs("EPSG:4326", UTM, always_xy=True)
    for v, u in [(0, 0), (17, 200), (128, 128), (255, 3), (255, 255)]:
        east, north = to_metres.transform(*lonlat[v, u])
        row, col = int((6_000_000 - north) // 1000), int((east - 500_000) // 1000)
        assert values[v, u] == pixels[0, row, col]
    picture = np.array(Image.open(io.BytesIO(tile_png(path, "prediction", z, x, y))))
    low, high = web_map(path).limits["prediction"]
    assert np.array_equal(picture, coloured(values, "prediction", low, high))
    step = int(np.ceil(256 * (values[17, 200] - low) / (high - low))) - 1
    assert tuple(picture[17, 200]) == (*ramp("prediction")[step], 255)


def test_pixels_lie_where_mercator_says(tmp_path):
    top_left = tile_lonlat(0, 0, 0)[0]
    assert top_left[0] == pytest.approx(-180 + 180 / 256) and 84.9 < top_left[1] < 85.06
    lonlat = tile_lonlat(1, 1, 1).reshape(SIDE, SIDE, 2)  # the south-east quarter
    assert (np.diff(lonlat[0, :, 0]) > 0).all() and (np.diff(lonlat[:, 0, 1]) < 0).all()
    assert lonlat[0, 0, 0] == pytest.approx(90 / 256) and -1 < lonlat[0, 0, 1] < 0
    for place in ((MAX_ZOOM + 1, 0, 0), (2, 4, 0), (2, 0, -1)):
        with pytest.raises(MiradaError, match="there is no tile"):
            tile_lonlat(*place)


def test_nodata_and_what_lies_beside_the_map_are_transparent(tmp_path):
    path, pixels = a_map(tmp_path, crs="EPSG:4326", transform=from_origin(10, 50, 0.1, 0.1))
    opened = web_map(path)
    z, x, y = tile_of(13, 44, 6)
    values = tile_values(opened, "prediction", z, x, y).ravel()
    lon, lat = tile_lonlat(z, x, y).T
    row, col = np.floor((50 - lat) / 0.1).astype(int), np.floor((lon - 10) / 0.1).astype(int)
    inside = (row >= 0) & (row < 90) & (col >= 0) & (col < 150)
    expected = np.where(inside, pixels[0][row.clip(0, 89), col.clip(0, 149)], np.nan)
    assert np.array_equal(values, expected, equal_nan=True)
    assert 0 < np.isnan(expected).mean() < 1
    alpha = tile_picture(opened, "prediction", z, x, y)[..., 3].ravel()
    assert np.array_equal(alpha == 255, np.isfinite(expected))
    elsewhere = tile_picture(opened, "prediction", *tile_of(-60, 10, 7))
    assert not elsewhere.any()


def test_the_width_of_the_interval_is_a_band_and_other_names_are_not(tmp_path):
    path, _ = a_map(tmp_path)
    opened = web_map(path)
    assert opened.bands == ("prediction", WIDTH, "applicability", "low", "high")
    values = tile_values(opened, WIDTH, *tile_of(147.8, -36.5, 10))
    assert np.allclose(values[np.isfinite(values)], 7, atol=1e-4)
    with pytest.raises(MiradaError, match=r"map.tif has no band 'sprd'; it has prediction"):
        tile_picture(opened, "sprd", 0, 0, 0)


def test_a_map_across_the_antimeridian_has_bounds_beyond_180_and_tiles_on_both_sides(tmp_path):
    degrees, _ = a_map(tmp_path, crs="EPSG:4326", transform=from_origin(175, -10, 0.1, 0.1))
    metres, _ = a_map(
        tmp_path, name="metres.tif", crs="EPSG:32601", transform=from_origin(330_000, 8_000_000, 1000, 1000)
    )
    for path in (degrees, metres):
        opened = web_map(path)
        west, south, east, north = opened.bounds
        assert 170 < west < 180 < east < 200 and -30 < south < north < 80
        middle = (south + north) / 2
        for lon in (179.95, -179.95):
            assert np.isfinite(tile_values(opened, "prediction", *tile_of(lon, middle, 9))).any()
        whole = tile_values(opened, "prediction", 0, 0, 0)
        assert np.isfinite(whole[:, :10]).any() == np.isfinite(whole[:, -10:]).any()
        assert not np.isfinite(whole[:, 20:-20]).any()


def test_a_map_around_the_pole_goes_around_the_globe(tmp_path):
    path, _ = a_map(tmp_path, size=(100, 100), crs="EPSG:3031", transform=from_origin(-2.5e6, 2.5e6, 5e4, 5e4))
    west, south, east, north = web_map(path).bounds
    assert (west, south, east) == (-180, -90, 180) and -70 < north < -55
    assert np.isfinite(tile_values(web_map(path), "prediction", 2, 1, 3)).mean() > 0.2


def test_from_afar_a_pixel_is_the_mean_of_what_it_covers(tmp_path):
    flat = np.repeat(np.repeat(numbers(1, 64, 64), 16, axis=1), 16, axis=2)
    path = write(
        tmp_path / "large.tif", flat, crs="EPSG:4326", transform=from_origin(0, 40, 0.01, 0.01), names=("prediction",)
    )
    values = tile_values(web_map(path), "prediction", *tile_of(5, 35, 6))
    seen = values[np.isfinite(values)]
    assert len(seen) > 1000 and seen.min() >= flat.min() and seen.max() <= flat.max()
    middle = tile_values(web_map(path), "prediction", 1, 1, 0)
    assert abs(np.nanmean(middle) - flat.mean()) < 0.2 * flat.std() * 3


def test_colours_of_applicability_meet_at_one():
    picture = coloured(
        np.array([[0.0, 1.0, 1.001, 2.0, 9.0, np.nan]]), "applicability", *limits("applicability", np.ones(3))
    )
    red, blue = picture[0, :, 0].astype(int), picture[0, :, 2].astype(int)
    assert (blue[:2] > red[:2]).all() and (red[2:5] > blue[2:5]).all()
    assert picture[0, -1].tolist() == [0, 0, 0, 0] and (picture[0, 3] == picture[0, 4]).all()
    assert len(stops("spread")) == 32 and stops("prediction")[0].startswith("#4")


def test_limits_are_robust_and_never_empty():
    values = np.append(np.linspace(0, 1, 999, dtype=np.float32), 1e6)
    assert limits("prediction", values) == pytest.approx((0.01, 0.99), abs=0.01)
    assert limits("spread", np.full(5, 3.0)) == (2.5, 3.5)
    assert limits("spread", np.full(5, np.nan)) == (0.0, 1.0)


def test_a_map_that_was_written_again_is_read_again(tmp_path):
    path, _ = a_map(tmp_path)
    place = tile_of(147.8, -36.5, 10)
    before = tile_png(path, "prediction", *place)
    write(path, numbers(4, 91, 150)[:, ::-1].copy(), nodata=np.nan, names=NAMES)
    assert tile_png(path, "prediction", *place) != before


def test_only_maps_are_opened(tmp_path):
    other = write(tmp_path / "climate.tif", numbers(1, 9, 9), names=("rain",))
    with pytest.raises(MiradaError, match=r"climate.tif is not a map made by `mirada map`"):
        web_map(other)
    path, _ = a_map(tmp_path)
    disguised = tmp_path / "list.tif"  # what GDAL would take for a list of other files
    disguised.write_text(
        '<VRTDataset rasterXSize="9" rasterYSize="9"><VRTRasterBand dataType="Float32" band="1">'
        f"<Description>prediction</Description><SimpleSource><SourceFilename>{path}</SourceFilename></SimpleSource>"
        "</VRTRasterBand></VRTDataset>"
    )
    with pytest.raises(MiradaError, match=r"list.tif is not a GeoTIFF that can be read"):
        web_map(disguised)
    with pytest.raises(MiradaError, match="there is no such map"):
        web_map(tmp_path / "nothing.tif")
