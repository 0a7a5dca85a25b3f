"""Previews: layers with their colours, and a page that works without a network."""

import base64
import io
import json
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("rasterio")

import pyproj
from PIL import Image

from mirada.verbs.maps.map_run import map_rasters
from mirada.verbs.maps.preview import Layer, read_small
from mirada.verbs.maps.preview_page import LATTICE
from tests.verbs.maps.conftest import make_rasters
from tests.verbs.maps.predictors import WindowSum

LAYERS = ["prediction", "interval width", "spread", "applicability"]


@pytest.fixture(scope="module")
def rasters(tmp_path_factory):
    return make_rasters(tmp_path_factory.mktemp("maps"))


@pytest.fixture(scope="module")
def made(rasters, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "map & <b>.tif"
    return map_rasters(WindowSum(("red", "nir")), rasters, out, workers=1)


def facts_of(page):
    return json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_low_and_high_are_shown_as_the_width_of_the_interval(made):
    small = read_small(made.path, 1000)
    assert [layer.name for layer in small.layers] == LAYERS
    assert np.nanmax(np.abs(small.layers[1].values - 3)) < 0.01


def test_a_big_map_is_shown_small(made):
    small = read_small(made.path, 30)
    assert small.layers[0].values.shape == (21, 30) and small.grid.size == (150, 210)


def test_pixels_without_data_are_transparent():
    values = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    image = np.array(Image.open(io.BytesIO(Layer("prediction", values).png())))
    assert np.array_equal(image[..., 3] == 0, np.isnan(values)) and (image[0, 0] != image[1, 2]).any()


@pytest.mark.parametrize("values", [np.full((2, 3), np.nan, np.float32), np.full((2, 3), 7, np.float32)])
def test_a_layer_without_variation_has_limits_too(values):
    low, high = Layer("prediction", values).limits
    assert low < high


def test_the_picture_has_all_layers_and_their_colour_bars(made):
    with Image.open(made.png) as image:
        assert image.width > 3 * image.height and image.format == "PNG"


def test_the_page_holds_values_and_places(made, rasters):
    page = made.page.read_text("utf-8")
    facts = facts_of(page)
    assert [layer["name"] for layer in facts["layers"]] == LAYERS
    lon, lat = floats(facts["lonlat"]).reshape(2, LATTICE, LATTICE)
    west, south, east, north = rasters.grid.bounds
    corners = pyproj.Transformer.from_crs(rasters.crs, "EPSG:4326", always_xy=True).transform(
        (west, east), (north, south)
    )
    assert np.allclose((lon[[0, -1], [0, -1]], lat[[0, -1], [0, -1]]), corners, atol=1e-4)
    first = facts["layers"][0]
    values = floats(first["values"]).reshape(first["size"])
    assert np.array_equal(values, read_small(made.path, 350).layers[0].values, equal_nan=True)


def test_the_page_needs_nothing_from_elsewhere(made):
    page = made.page.read_text("utf-8")
    assert not re.search(r"https?://|<link|<script[^>]* src|@import", page)
    assert "default-src 'none'" in page and "<b>" not in page


@pytest.mark.long
def test_the_page_in_a_browser(made):
    """Point at a pixel and read what the map has there; another layer at the press of a button; zoom and pan."""
    browsers = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium to open the page in")
    expected = read_small(made.path, 350)
    with browsers.sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium) as browser:
        page = browser.new_page(viewport={"width": 900, "height": 700}, offline=True)
        failures = []
        page.on("pageerror", lambda failure: failures.append(failure))
        page.goto(made.page.as_uri())
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 + 0.5, box["y"] + box["height"] / 2 + 0.5)
        told = float(page.locator("#value b").text_content())
        assert told == pytest.approx(expected.layers[0].values[75, 105], rel=1e-3)
        assert "latitude -36." in page.locator("#lonlat").text_content()
        page.mouse.wheel(0, -400)
        assert float(page.locator("#value b").text_content()) == told
        page.get_by_role("button", name="interval width").click()
        page.mouse.move(box["x"] + box["width"] / 2 + 0.5, box["y"] + box["height"] / 2 + 0.5)
        assert float(page.locator("#value b").text_content()) == pytest.approx(3, abs=0.01)
        page.mouse.down()
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.up()
        page.get_by_role("button", name="Whole map").click()
        assert not failures
