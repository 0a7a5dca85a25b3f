"""Map: our own tiles, and a click that says what the map and the model say there."""

import re

import pytest
import rasterio
from rasterio.warp import transform

import mirada

# The runs that all look at are trained once.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("studio")]


def test_a_click_gives_the_value_of_the_map_and_what_the_model_looked_at(visit, folder):
    page = visit("#/map/spatioformer-plots")
    page.locator("img.leaflet-tile-loaded").first.wait_for()
    box = page.locator(".leaflet-container").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2 + 30, box["y"] + box["height"] / 2 - 30)
    page.wait_for_function("() => location.hash.includes('at=')")
    told = page.locator(".map-told")
    told.locator(".value").wait_for()
    latitude, longitude = map(
        float, re.search(r"at=([-\d.]+)%2C([-\d.]+)", page.evaluate("() => location.hash")).groups()
    )
    with rasterio.open(folder / "spatioformer-plots" / "maps" / "richness.tif") as file:
        (x,), (y,) = transform("EPSG:4326", file.crs, [longitude], [latitude])
        prediction, low, high = next(file.sample([(x, y)]))[:3]
    text = told.inner_text()
    assert f"{prediction:.3g}" in text and f"{low:.3g}" in text and f"{high:.3g}" in text
    told.get_by_role("heading", name="Where it looks around itself").wait_for()
    told.get_by_role("heading", name="Plots that it rests on").wait_for()
    assert mirada.load(folder / "spatioformer-plots").data["chip_size"] == 3


def test_bands_and_typed_places(visit):
    page = visit("#/map/spatioformer-plots")
    page.get_by_role("button", name="applicability").click()
    page.wait_for_function("() => location.hash.includes('band=applicability')")
    page.get_by_label("Latitude").fill("36.5 S")
    page.get_by_label("Longitude").fill("147.85 E")
    page.get_by_role("button", name="Ask").click()
    page.locator(".map-told .value").wait_for()
    page.get_by_label("Latitude").fill("far away")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("alert").wait_for()
