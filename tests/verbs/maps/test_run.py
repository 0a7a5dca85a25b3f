"""A run on plots from training to the map: stopped and resumed, mapped in tiles, asked about points, exported."""

import csv
import json
import pickle
import shutil
import signal

import numpy as np
import pytest

pytest.importorskip("rasterio")

import rasterio

import mirada
from mirada.data.geo.rasters import open_rasters
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.maps.run_predictor import RunPredictor
from mirada.verbs.train import Watcher, resume, train
from tests.geotiffs import UTM, write
from tests.places import write_csv
from tests.train.test_resume import StopAt
from tests.verbs.maps import plots_run
from tests.verbs.maps.plots_run import NO_VALIDATION, NUM, OURS, PAPER, SIZE

HALO = 1


@pytest.fixture
def country():
    return plots_run.country()


@pytest.fixture
def rasters(country):
    return [country / "country.tif", country / "soil.tif"]


@pytest.fixture
def own_run(tmp_path):
    """A copy that a test may write into."""
    return shutil.copytree(plots_run.run(), tmp_path / "own")


def read(path):
    with rasterio.open(path) as file:
        return dict(zip(file.descriptions, file.read(), strict=True))


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The map in one tile, by one process."""
    folder = plots_run.country()
    out = tmp_path_factory.mktemp("whole") / "map.tif"
    made = mirada.map(plots_run.run(), [folder / "country.tif", folder / "soil.tif"], out, tile=192, workers=1)
    assert made.num_tiles == 1 and made.notes == ()
    return read(made.path)


def test_bands_are_in_order_and_nodata_is_kept(whole, rasters):
    assert tuple(whole) == ("prediction", "low", "high", "spread", "applicability")
    height, width = SIZE
    is_valid = np.isfinite(open_rasters(rasters).read((0, height), (0, width))).all(axis=0)
    assert 0.8 < is_valid.mean() < 1
    for name, band in whole.items():
        assert np.array_equal(np.isfinite(band), is_valid), name
    low, middle, high = (whole[name][is_valid] for name in ("low", "prediction", "high"))
    assert (low < middle).all() and (middle < high).all()
    assert (whole["spread"][is_valid] > 0).all() and (whole["applicability"][is_valid] >= 0).all()


@pytest.mark.parametrize(("tile", "workers"), [(64, 1), (128, 1), (64, 2)])
def test_tiles_and_threads_of_dask_change_no_bit(whole, rasters, tmp_path, tile, workers):
    seen = []
    made = mirada.map(plots_run.run(), rasters, tmp_path / "map.tif", tile=tile, workers=workers, progress=seen.append)
    assert same(read(made.path), whole)
    assert made.png.exists() and made.page.exists() and seen[-1].done == made.num_tiles > 1


def test_the_map_is_what_the_model_says_of_the_points_on_it(whole, country):
    """Through another door: chips around the plots, one by one."""
    rows = mirada.predict(plots_run.run(), country / "plots.csv")
    table = csv.DictReader((country / "plots.csv").read_text().splitlines())
    for row, given in zip(rows, table, strict=True):
        place = int((6e6 - float(given["northing"])) // 1000), int((float(given["easting"]) - 5e5) // 1000)
        for column, band in (("predicted_richness", "prediction"), ("low", "low"), ("spread", "spread")):
            assert row[column] == pytest.approx(whole[band][place], rel=1e-4, abs=1e-4)
        assert row["area"] == ("inside" if whole["applicability"][place] <= 1 else "outside")


def test_points_need_no_target_and_get_a_reason_where_they_have_no_answer(country, tmp_path):
    columns = {"easting": [520_500, 400_000, 510_500], "northing": [5_990_500, 5_990_500, 5_930_500], "soil": [3, 3, 3]}
    path = write_csv(tmp_path / "new.csv", columns)
    rows = mirada.predict(plots_run.run(), path, out=tmp_path / "answers.csv")
    assert [row["error"] for row in rows] == [
        None,
        "new.csv[1] lies outside the rasters.",
        "new.csv[2] falls on a pixel without data.",
    ]
    assert list(rows[0])[:3] == ["name", "longitude", "latitude"] and rows[1]["predicted_richness"] is None
    assert rows[0]["low"] < rows[0]["predicted_richness"] < rows[0]["high"]
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 4
    with pytest.raises(MiradaError, match="lies outside the rasters"):
        mirada.load(plots_run.run()).predict(path)
    without_soil = write_csv(tmp_path / "bare.csv", {key: columns[key] for key in ("easting", "northing")})
    with pytest.raises(MiradaError, match="no band is called soil"):
        mirada.predict(plots_run.run(), without_soil)
    both = [country / "country.tif", country / "soil.tif"]
    assert mirada.predict(plots_run.run(), without_soil, rasters=both)[0]["error"] is None


def test_evaluate_on_the_held_out_and_on_other_plots(own_run, country, tmp_path):
    held_out = mirada.evaluate(own_run)
    assert held_out.result["value"] == pytest.approx(RunFolder(own_run).read_result()["value"])
    assert held_out.result["n"] == len(held_out.rows) == RunFolder(own_run).read_data()["num_plots"]["test"]
    header, *lines = (country / "plots.csv").read_text().splitlines()
    (tmp_path / "other.csv").write_text("\n".join([header, *lines[:9]]) + "\n")
    other = mirada.evaluate(own_run, tmp_path / "other.csv")
    assert other.result["n"] == 9 and other.result["promised_inside"] == 0.8
    inside = [row["low"] <= row["target_richness"] <= row["high"] for row in other.rows]
    assert other.result["inside_interval"] == np.mean(inside)
    with pytest.raises(MiradaError, match="is the data this model was trained on"):
        mirada.evaluate(own_run, country / "plots.csv")
    with pytest.raises(MiradaError, match=r"setting 'data\.fit' has no meaning"):
        mirada.evaluate(own_run, tmp_path / "other.csv", settings=["data.fit=pad"])


def test_intervals_are_those_of_the_scheme_of_the_run(own_run):
    found = json.loads((own_run / "validation.json").read_text())
    assert RunFolder(own_run).read_data()["scheme"] == "blocked"
    certainty = mirada.load(own_run).certainty
    assert certainty.conformal.quantile == found["schemes"]["blocked"]["conformal"]["quantile"]
    del found["schemes"]["blocked"]["conformal"]
    found["schemes"]["blocked"]["no_intervals"] = "7 held-out blocks are too few."
    (own_run / "validation.json").write_text(json.dumps(found))
    assert "7 held-out blocks are too few: low and high are" in mirada.load(own_run).notes[0]


def test_a_run_without_validation_says_that_nobody_checked_its_bounds(rasters, country, tmp_path):
    made = mirada.map(plots_run.run(NO_VALIDATION), rasters, tmp_path / "map.tif", workers=1)
    assert made.outputs == ("prediction", "low", "high", "spread")
    assert "has no validation" in made.notes[0] and "no area of applicability" in made.notes[1]
    rows = mirada.predict(plots_run.run(NO_VALIDATION), country / "plots.csv")
    assert "area" not in rows[0] and rows[0]["low"] < rows[0]["high"]


def test_an_exported_model_maps_as_its_run_does(whole, rasters, country, tmp_path):
    files = mirada.export(plots_run.run(), out=tmp_path / "model")
    assert [file.name for file in files[2:]] == ["validation.json", "applicability.safetensors", "data.json"]
    made = mirada.map(tmp_path / "model", rasters, tmp_path / "map.tif", workers=1)
    assert same(read(made.path), whole)
    with pytest.raises(MiradaError, match="the model also needs rain, heat; add columns, or give rasters"):
        mirada.predict(tmp_path / "model", country / "plots.csv")
    rows = mirada.predict(tmp_path / "model", country / "plots.csv", rasters=rasters[:1])
    assert rows == mirada.predict(plots_run.run(), country / "plots.csv")
    with pytest.raises(MiradaError, match="models of plots are exported to safetensors only"):
        mirada.export(plots_run.run(), to="onnx", out=tmp_path / "onnx")


@pytest.mark.long
def test_draws_of_dropout_do_not_depend_on_the_tile_and_leave_the_prediction_alone(country, tmp_path):
    run, pixels = plots_run.run(PAPER), open_rasters(country / "country.tif").read((0, 40), (40, 110))
    raster = write(tmp_path / "part.tif", pixels, nodata=np.nan, names=("rain", "heat"))
    plain = mirada.map(run, raster, tmp_path / "plain.tif", workers=1)
    assert "spread" not in plain.outputs
    tiled, whole = (
        read(mirada.map(run, raster, tmp_path / f"{tile}.tif", tile=tile, workers=1, samples=2).path)
        for tile in (64, 128)
    )
    assert same(tiled, whole)
    spread = whole.pop("spread")
    assert same(whole, read(plain.path)) and np.nanmin(spread) > 0
    more = read(mirada.map(run, raster, tmp_path / "more.tif", workers=1, samples=3).path)
    assert not np.array_equal(more["spread"], spread, equal_nan=True)


@pytest.mark.long
def test_a_covariate_may_have_one_value_everywhere(country, tmp_path):
    raster, predictor = country / "country.tif", RunPredictor(plots_run.run(), constants={"soil": 4.0})
    assert predictor.band_names == ("rain", "heat") and len(predictor.scale.mean) == 2
    low, high = (
        read(mirada.map(plots_run.run(), raster, tmp_path / f"{soil}.tif", workers=1, constants={"soil": soil}).path)
        for soil in (1.0, 20.0)
    )
    assert not np.array_equal(low["prediction"], high["prediction"], equal_nan=True)
    with pytest.raises(MiradaError, match="has no covariate 'sool' \\(did you mean 'soil'"):
        RunPredictor(plots_run.run(), constants={"sool": 1.0})


def test_pickled_it_is_a_path_and_the_same_model():
    predictor = RunPredictor(plots_run.run(), constants={"soil": 4.0})
    packed = pickle.dumps(predictor)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    layers = np.random.default_rng(0).normal(size=(4, 64 + 2 * HALO, 64 + 2 * HALO)).astype(np.float32)
    assert again.identity == predictor.identity and np.array_equal(again.predict(layers), predictor.predict(layers))
    assert RunPredictor(plots_run.run()).identity != predictor.identity


def test_a_map_of_other_weights_is_not_gone_on_with(own_run, rasters, tmp_path):
    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    with pytest.raises(Enough):
        mirada.map(own_run, rasters, tmp_path / "map.tif", tile=64, workers=1, progress=stop)
    assert mirada.map(own_run, rasters, tmp_path / "copy.tif", tile=64, workers=1).num_kept == 0
    found = json.loads((own_run / "validation.json").read_text())
    found["schemes"]["blocked"]["conformal"]["quantile"] *= 2
    (own_run / "validation.json").write_text(json.dumps(found))
    with pytest.raises(MiradaError, match="belongs to another map \\(not the same: model\\)"):
        mirada.map(own_run, rasters, tmp_path / "map.tif", tile=64, workers=1)


def outcome(run):
    """All that a run leaves behind, but for times."""
    folder = RunFolder(run)
    files = (folder.predictions, folder.validation, folder.path / "validation.csv", folder.best / "model.safetensors")
    return [file.read_bytes() for file in files]


class StopInFold(Watcher):
    """Asks for a stop at a step of a fold of the validation."""

    def __init__(self, fold: int, stop: StopRequest) -> None:
        self.fold, self.stop, self.started = fold, stop, 0

    def starts(self, what, steps):
        self.started += 1

    def advances(self, progress):
        if self.started == 1 + self.fold and progress.step == 3:
            self.stop.request(signal.SIGTERM)


@pytest.mark.parametrize("when", ["training", "first fold", "fourth fold"])
def test_stopped_and_resumed_it_ends_in_the_same_bits(country, tmp_path, when):
    source, reading = plots_run.training(country)
    stop = StopRequest()
    watchers = {"training": StopAt(3, stop), "first fold": StopInFold(1, stop), "fourth fold": StopInFold(4, stop)}
    with plots_run.quick_stages():
        with pytest.raises(Stopped, match=f"mirada resume {tmp_path / 'run'}`"):
            train(source, settings=[*reading, *OURS], out=tmp_path / "run", watcher=watchers[when], stop=stop)
        assert not (tmp_path / "run" / "validation.json").exists()
        resume(tmp_path / "run")
    assert outcome(tmp_path / "run") == outcome(plots_run.run())
    assert not (tmp_path / "run" / "validation").exists()


def test_the_run_is_written_down(country):
    data = RunFolder(plots_run.run()).read_data()
    assert (data["inputs"], data["task"], data["crs"], data["chip_size"]) == ("plots", "field", UTM, 3)
    assert sum(data["num_plots"].values()) == NUM and data["band_names"] == ["rain", "heat"]
    schemes = json.loads((plots_run.run() / "validation.json").read_text())["schemes"]
    assert list(schemes) == ["random", "blocked", "buffered"]
    assert all(entry["models"].keys() == schemes["random"]["models"].keys() for entry in schemes.values())
