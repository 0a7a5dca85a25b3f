"""The studio's maps: their list, their tiles, what they say at a place, and nothing beside them."""

import base64
import io
import shutil

import numpy as np
import pytest

pytest.importorskip("rasterio")
pytest.importorskip("fastapi")

from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

import mirada
from mirada.serve.models import Models
from mirada.serve.refusals import answer_failures
from mirada.studio import maps
from mirada.studio.state import Studio
from mirada.verbs.maps.tiles_web import tile_picture
from mirada.verbs.maps.web_map import web_map
from tests.verbs.maps import plots_run

TILES = "/runs/places/maps/maps%2Frichness.tif/tiles"
AT = "/runs/places/maps/maps%2Frichness.tif/at"
PLACE = {"longitude": 147.85, "latitude": -36.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """runs/places with maps/richness.tif."""
    folder = tmp_path_factory.mktemp("studio")
    run = shutil.copytree(plots_run.run(), folder / "runs" / "places")
    rasters = [plots_run.country() / "country.tif", plots_run.country() / "soil.tif"]
    mirada.map(run, rasters, run / "maps" / "richness.tif", workers=1)
    return folder / "runs"


@pytest.fixture(scope="module")
def client(folder):
    app = FastAPI()
    answer_failures(app)
    app.include_router(maps.routes(Studio(folder, Models(2))))
    return TestClient(app)


def test_the_list_says_where_a_map_lies_and_what_its_colours_stand_for(client, folder):
    (found,) = client.get("/runs/places/maps").json()
    assert found["file"] == "maps/richness.tif" and found["target"] == "richness" and found["size"] == [90, 150]
    (south, west), (north, east) = found["bounds"]
    assert -37 < south < north < -36 and 146.9 < west < east < 148.8
    assert [band["name"] for band in found["bands"]][:4] == ["prediction", "interval width", "spread", "applicability"]
    assert all(band["low"] < band["high"] and len(band["colours"]) == 32 for band in found["bands"])


def test_a_tile_is_the_picture_of_its_values(client, folder):
    opened = web_map(folder / "places" / "maps" / "richness.tif")
    for band in ("prediction", "interval width"):
        answer = client.get(f"{TILES}/{band}/9/466/312.png")
        assert answer.headers["content-type"] == "image/png"
        picture = np.array(Image.open(io.BytesIO(answer.content)))
        assert np.array_equal(picture, tile_picture(opened, band, 9, 466, 312)) and picture[..., 3].any()
    again = client.get(f"{TILES}/prediction/9/466/312.png", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304 and not again.content
    empty = client.get(f"{TILES}/prediction/9/0/0.png")
    assert empty.status_code == 200 and not np.array(Image.open(io.BytesIO(empty.content))).any()


def test_a_place_is_answered_with_its_values_its_chip_and_its_plots(client):
    found = client.get(AT, params=PLACE).json()
    assert found["values"]["low"] < found["values"]["prediction"] < found["values"]["high"]
    weights = np.frombuffer(base64.b64decode(found["chip"]["attention"]), "<f4")
    assert found["chip"]["size"] == [3, 3] and weights.sum() == pytest.approx(1, abs=1e-5)
    assert set(found["plots"][0]) == {"name", "longitude", "latitude", "value", "weight", "km"}
    assert found["num_plots"] > 20 and found["missing"] is None
    turned = client.get(AT, params=PLACE | {"longitude": PLACE["longitude"] - 360}).json()
    assert turned["values"] == found["values"]
    nowhere = client.get(AT, params={"longitude": 0, "latitude": 0}).json()
    assert set(nowhere["values"].values()) == {None} and nowhere["missing"] == "data" and nowhere["chip"] is None


@pytest.mark.parametrize(
    "file",
    [
        *("nothing.tif", "..%2Fplaces%2Fmaps%2Frichness.tif", "maps%2F..%2Fmaps%2Frichness.tif", "%2Fetc%2Fpasswd"),
        *("maps%2Frichness.tif%00", "maps%2Frichness.html", "data.json", "..%2F..%2F..%2Fetc%2Fpasswd", "maps"),
    ],
)
def test_no_other_file_is_opened_by_any_name(client, file):
    for path in (
        f"/runs/places/maps/{file}/at?longitude=1&latitude=1",
        f"/runs/places/maps/{file}/tiles/low/0/0/0.png",
    ):
        answer = client.get(path)
        assert answer.status_code == 404 and set(answer.json()) == {"error"}


@pytest.mark.parametrize("run", ["nobody", "..%2Fplaces", "%2e%2e", "places%00"])
def test_no_other_folder_is_a_run(client, run):
    assert client.get(f"/runs/{run}/maps").status_code == 404


def test_tiles_and_places_that_are_none_are_refused(client):
    for tile in ("sprd/0/0/0", "low/1/2/0", "low/1/0/2"):
        assert client.get(f"{TILES}/{tile}.png").status_code == 404
    for tile in ("low/23/0/0", "low/-1/0/0", "low/0/0/x", "low/99999999999999999999/0/0"):
        assert client.get(f"{TILES}/{tile}.png").status_code == 422
    for place in ({"latitude": 91}, {"longitude": "nan"}, {"longitude": 1e9}, {"latitude": "here"}):
        assert client.get(AT, params=PLACE | place).status_code == 422


def test_tiles_are_the_same_from_many_threads(client):
    from concurrent.futures import ThreadPoolExecutor

    tiles = [f"{TILES}/spread/10/{x}/{y}.png" for x in range(931, 935) for y in range(623, 627)]
    alone = [client.get(tile).content for tile in tiles]
    maps.tile_png.__globals__["_kept_png"].cache_clear()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda tile: client.get(tile).content, tiles)) == alone
