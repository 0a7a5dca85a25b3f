"""What a map says at a place is what the model says there, with what it looked at."""

import shutil

import numpy as np
import pytest

pytest.importorskip("rasterio")

import rasterio
import torch
from pyproj import Transformer

import mirada
from mirada.core import record
from mirada.systems import Spatioformer
from mirada.verbs.maps.at import map_at, values_at
from mirada.verbs.maps.chip_attention import around
from mirada.verbs.maps.of_run import NoMap, map_of, maps_of
from mirada.verbs.maps.tags import MapTags, tags_of
from mirada.verbs.maps.web_map import web_map
from tests.geotiffs import UTM, numbers, write
from tests.places import write_csv
from tests.verbs.maps import plots_run
from tests.verbs.maps.plots_run import PAPER


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of runs with one that has a map, whose rasters lie elsewhere."""
    folder = tmp_path_factory.mktemp("studio")
    shutil.copytree(plots_run.country(), folder / "data", ignore=shutil.ignore_patterns("run*"))
    run = shutil.copytree(plots_run.run(), folder / "runs" / "places")
    rasters = [folder / "data" / "country.tif", folder / "data" / "soil.tif"]
    mirada.map(run, rasters, run / "maps" / "richness.tif", workers=1)
    return folder / "runs"


@pytest.fixture(scope="module")
def trained(runs):
    return mirada.load(runs / "places", device="cpu")


def lonlat(easting, northing):
    return Transformer.from_crs(UTM, "EPSG:4326", always_xy=True).transform(easting, northing)


def test_a_map_remembers_its_run_and_its_rasters(runs):
    opened = web_map(runs / "places" / "maps" / "richness.tif")
    assert opened.tags.run == "places" and opened.tags.target == "richness"
    assert opened.tags.rasters == ("../../../data/country.tif", "../../../data/soil.tif")
    assert all(path.exists() for path in opened.tags.raster_paths(opened.path))


def test_at_a_place_it_says_what_the_model_says(runs, trained, tmp_path):
    place = {"easting": [523_700], "northing": [5_981_200]}
    both = [runs.parent / "data" / name for name in ("country.tif", "soil.tif")]
    (said,) = trained.predict(write_csv(tmp_path / "place.csv", place), rasters=both)
    found = map_at(trained, web_map(runs / "places" / "maps" / "richness.tif"), *lonlat(523_700, 5_981_200))
    for band, column in (
        ("prediction", "predicted_richness"),
        *((n, n) for n in ("low", "high", "spread", "applicability")),
    ):
        assert found.values[band] == pytest.approx(said[column], rel=1e-4, abs=1e-4)
    assert found.values["interval width"] == pytest.approx(said["high"] - said["low"], rel=1e-4)
    assert (found.longitude, found.latitude) == pytest.approx(lonlat(523_500, 5_981_500))  # the middle of the pixel
    assert found.missing is None and found.coverage == 0.8


def test_it_looks_at_its_chip_and_at_plots(runs, trained):
    found = map_at(trained, web_map(runs / "places" / "maps" / "richness.tif"), *lonlat(560_500, 5_960_500))
    assert found.chip.kind == "around" and found.chip.attention_HW.shape == (3, 3)
    assert found.chip.attention_HW.sum() == pytest.approx(1, abs=1e-5)
    weights = [plot.weight for plot in found.plots]
    assert weights == sorted(weights, reverse=True) and 0 < sum(weights) <= 1 and len(weights) == 12
    data = trained.folder.read_data()
    assert found.num_plots == data["num_plots"]["train"] + data["num_plots"]["val"]
    assert all(0 <= plot.km < 200 and plot.name.startswith("plots.csv[") for plot in found.plots)


def test_all_weights_together_give_the_prediction(runs, trained, monkeypatch):
    """ŷ = Σ α y holds for each member; the mean of the weights gives the mean of the members."""
    monkeypatch.setattr("mirada.verbs.maps.at.NUM_PLOTS", 1000)
    found = map_at(trained, web_map(runs / "places" / "maps" / "richness.tif"), *lonlat(523_500, 5_981_500))
    assert sum(plot.weight for plot in found.plots) == pytest.approx(1, abs=1e-4)
    assert sum(plot.weight * plot.value for plot in found.plots) == pytest.approx(found.values["prediction"], rel=1e-3)


def test_beside_the_map_and_without_data_there_is_nothing(runs, trained):
    opened = web_map(runs / "places" / "maps" / "richness.tif")
    for place in (lonlat(400_000, 5_990_500), lonlat(510_500, 5_930_500)):
        found = map_at(trained, opened, *place)
        assert set(found.values.values()) == {None} and found.missing == "data"
        assert found.chip is None and found.plots == ()
    assert values_at(opened, 0.0, 0.0)[0] is None


def test_what_is_gone_is_left_out_with_a_word_for_it(runs, trained, tmp_path):
    run, data = runs / "places", runs.parent / "data"
    place = lonlat(523_500, 5_981_500)
    path = shutil.copy(run / "maps" / "richness.tif", tmp_path / "moved.tif")  # its rasters are not seen from here
    assert map_at(trained, web_map(path), *place).missing == "rasters"
    with rasterio.open(run / "maps" / "richness.tif") as file:
        bare = write(tmp_path / "bare.tif", file.read(), nodata=np.nan, names=file.descriptions)
        assert tags_of(file).run == "places"
    found = map_at(trained, web_map(bare), *place)
    assert found.missing == "tags" and found.values["prediction"] is not None and found.chip is None
    other = MapTags("places", "another model", "richness", (str(data / "country.tif"),))
    with rasterio.open(bare, "r+") as file:
        file.update_tags(**other.written())
    assert map_at(trained, web_map(bare), *place).missing == "model"


def test_a_model_of_chips_alone_shows_what_is_looked_at_and_no_plots(runs):
    run = plots_run.run(PAPER)
    trained, country = mirada.load(run, device="cpu"), plots_run.country()
    pixels = numbers(2, 12, 12) / 10 + np.array([100, 15], np.float32)[:, None, None]
    raster = write(country / "part.tif", pixels, names=("rain", "heat"))
    made = mirada.map(run, raster, country / "part-map.tif", workers=1)
    found = map_at(trained, web_map(made.path), *lonlat(506_500, 5_994_500))
    assert found.chip.kind == "received" and found.chip.attention_HW.sum() == pytest.approx(1, abs=1e-5)
    assert found.plots == () and found.missing is None


@pytest.mark.parametrize(("chip_size", "depth"), [(5, 1), (7, 3), (23, 2)])
def test_looking_around_in_several_layers_and_tiles_is_one_distribution(chip_size, depth):
    """In a chip of 23 pixels the first layer looks in four tiles."""
    torch.manual_seed(0)
    model = Spatioformer(3, 0, 4, chip_size, dim=8, depth=depth, num_heads=2, members=2).eval()
    layers = torch.randn(1, 5, chip_size, chip_size)
    layers[:, :3, :2] = torch.nan
    with torch.inference_mode(), record(model) as maps:
        model(layers)
    weights = around(model, maps)
    assert weights.shape == (chip_size, chip_size) and weights.sum().item() == pytest.approx(1, abs=1e-5)
    assert (weights[:2] == 0).all() and (weights[3:, 1:] > 0).all()


def test_maps_are_found_in_the_run_and_beside_it_by_their_tag(runs):
    run = runs / "places"
    made = run / "maps" / "richness.tif"
    try:
        shutil.copy(made, run / "copy.tif")
        shutil.copy(made, runs / "beside.tif")
        write(runs / "climate.tif", numbers(1, 5, 5), names=("rain",))
        write(runs / "others.tif", numbers(1, 5, 5), names=("prediction",))
        (run / "secret.tif").symlink_to(write(runs.parent / "secret.tif", numbers(1, 5, 5), names=("prediction",)))
        assert list(maps_of(run, runs)) == ["maps/richness.tif", "copy.tif", "runs/beside.tif"]
        for name in ("secret.tif", "runs/others.tif", "../places/copy.tif", "maps/../copy.tif", str(made), "", "\0"):
            with pytest.raises(NoMap, match="has no map"):
                map_of(run, runs, name)
    finally:
        for left in (
            run / "copy.tif",
            runs / "beside.tif",
            runs / "climate.tif",
            runs / "others.tif",
            run / "secret.tif",
        ):
            left.unlink()


def test_tags_of_strangers_are_ignored(tmp_path):
    for content in ("no JSON", "[1]", '{"run": "x"}', '{"run":"x","model":"","target":"","rasters":3}'):
        path = write(tmp_path / "map.tif", numbers(1, 5, 5), names=("prediction",))
        with rasterio.open(path, "r+") as file:
            file.update_tags(MIRADA=content)
        with rasterio.open(path) as file:
            assert tags_of(file) is None
