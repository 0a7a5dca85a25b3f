"""Maps: the same bits whatever the tiles, edges and nodata in place, faults told in a sentence."""

import dataclasses
import errno

import numpy as np
import pytest

pytest.importorskip("rasterio")

import pyproj
import rasterio

from mirada.data.geo.rasters import open_rasters
from mirada.data.geo.scale import LayerScale
from mirada.errors import MiradaError
from mirada.verbs.maps.map_run import map_rasters
from mirada.verbs.maps.predict_tile import Job
from mirada.verbs.maps.tiles import Tile, tiles_of, whole_steps
from tests.geotiffs import numbers, write
from tests.verbs.maps.predictors import OUTPUTS, ConvolutionOf, WindowSum, save_convolution

BANDS = ("red", "nir")


def read(path):
    with rasterio.open(path) as file:
        return file.read()


def test_tiles_cover_the_raster_once_and_begin_at_steps():
    assert whole_steps(1) == whole_steps(64) == 64 and whole_steps(65) == 128
    covered = np.zeros((150, 210), int)
    for tile in tiles_of((150, 210), 64):
        covered[slice(*tile.rows), slice(*tile.cols)] += 1
    assert (covered == 1).all() and len(tiles_of((150, 210), 64)) == 12 and len(tiles_of((128, 192), 64)) == 6
    with pytest.raises(MiradaError, match="tile is 0"):
        whole_steps(0)


@pytest.mark.parametrize("tile", [64, 128, 192])
def test_tiled_equals_untiled_bit_for_bit(rasters, tmp_path, tile):
    """Against one prediction of the whole raster, with halo; 150 × 210 is divided by none of the sizes."""
    predictor = WindowSum(BANDS)
    result = map_rasters(predictor, rasters, tmp_path / "map.tif", tile=tile, workers=1)
    layers = np.concatenate([rasters.read((-2, 152), (-2, 212)), rasters.lonlat((-2, 152), (-2, 212))])
    expected = predictor.predict(layers.astype(np.float32))
    expected[:, np.isnan(rasters.read((0, 150), (0, 210))).any(axis=0)] = np.nan
    assert np.array_equal(read(result.path), expected, equal_nan=True)
    assert (
        result.size == (150, 210) and result.outputs == OUTPUTS and result.num_tiles == len(tiles_of((150, 210), tile))
    )


@pytest.mark.parametrize("size", [(150, 210), (128, 192)])
def test_a_model_gives_the_same_bits_for_tiles_that_do_and_do_not_divide(tmp_path, size):
    rasters = open_rasters(write(tmp_path / "pixels.tif", numbers(2, *size), names=BANDS))
    predictor = ConvolutionOf(save_convolution(tmp_path / "run", BANDS))
    maps = [
        read(map_rasters(predictor, rasters, tmp_path / f"{tile}.tif", tile=tile, workers=1).path)
        for tile in (64, 128, 256)
    ]
    assert np.array_equal(maps[0], maps[1]) and np.array_equal(maps[0], maps[2]) and np.isfinite(maps[0]).all()


def test_the_file_is_a_cloud_optimised_geotiff_in_place(rasters, tmp_path):
    out = map_rasters(WindowSum(BANDS), rasters, tmp_path / "new" / "map.tif", tile=64, workers=1).path
    with rasterio.open(out) as file:
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG" and file.dtypes == ("float32",) * 5
        assert file.crs.to_string() == rasters.crs and file.transform == rasters.transform
        assert file.descriptions == OUTPUTS and np.isnan(file.nodata) and file.shape == rasters.size
    assert {path.name for path in out.parent.iterdir()} == {"map.tif", "map.png", "map.html"}


def test_big_maps_have_overviews(tmp_path):
    rasters = open_rasters(write(tmp_path / "pixels.tif", numbers(1, 700, 1100)))
    with rasterio.open(
        map_rasters(WindowSum(rasters.band_names), rasters, tmp_path / "map.tif", workers=1).path
    ) as file:
        assert file.overviews(1)


def test_tiles_without_data_cost_no_prediction(rasters):
    class Refuses(WindowSum):
        def predict(self, layers_LHW):
            raise AssertionError("there is nothing to predict")

    job = Job(Refuses(BANDS), rasters)
    assert job.predict(Tile(0, (100, 164), (0, 64))) is None
    assert job.predict(Tile(0, (200, 264), (0, 64))) is None  # beyond the raster
    with pytest.raises(AssertionError, match="nothing"):
        job.predict(Tile(0, (64, 128), (0, 64)))


def test_australia_lies_where_it_should(real_data, tmp_path):
    rasters = open_rasters([real_data("geo/australia") / f"bio_{n}.tif" for n in (4, 5, 12, 15)])
    out = map_rasters(WindowSum(rasters.band_names), rasters, tmp_path / "map.tif", tile=192, workers=1).path
    with rasterio.open(out) as file:
        prediction, lon, lat = file.read(1), file.read(4), file.read(5)
        to_lonlat = pyproj.Transformer.from_crs(file.crs, "EPSG:4326", always_xy=True)
        assert file.bounds == rasterio.open(real_data("geo/australia/bio_4.tif")).bounds and file.shape == (452, 534)
        for x, y in (file.xy(0, 0), file.xy(451, 533)):  # the corners of the file, and where pyproj puts them
            assert np.allclose(
                to_lonlat.transform(x, y), rasters.lonlat(*[(n, n + 1) for n in file.index(x, y)])[:, 0, 0]
            )
        for row, col in zip(*np.nonzero(np.isfinite(prediction)), strict=True):
            if row % 50 == 0 and col % 50 == 0:
                assert np.allclose(to_lonlat.transform(*file.xy(row, col)), (lon[row, col], lat[row, col]), atol=1e-4)
    is_sea = np.isnan(rasters.read((0, 452), (0, 534))).any(axis=0)
    assert np.array_equal(np.isnan(prediction), is_sea) and 0.55 < is_sea.mean() < 0.57
    rows, cols = np.nonzero(~is_sea)
    assert np.isfinite(prediction[rows.max()]).any() and np.isfinite(prediction[:, cols.max()]).any()


def test_another_unit_than_in_training_is_refused(rasters, tmp_path):
    scale = LayerScale("standard", (0.4, 50.0), (0.2, 20.0))
    with pytest.raises(MiradaError, match=r"band red: 98% .* wrong reflectance scale"):
        map_rasters(WindowSum(BANDS, scale=scale), rasters, tmp_path / "map.tif", workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["pixels.tif"]
    same = LayerScale("standard", (50.0, 50.0), (20.0, 20.0))
    assert map_rasters(WindowSum(BANDS, scale=same), rasters, tmp_path / "map.tif", workers=1).path.exists()


def test_bands_by_order_are_noted(rasters, tmp_path):
    result = map_rasters(WindowSum(("b3", "b4")), rasters, tmp_path / "map.tif", workers=1)
    assert "red, nir are taken for b3, b4 in this order" in result.notes[0]


def test_a_map_without_a_single_pixel_is_written_and_noted(tmp_path):
    nothing = np.full((1, 70, 90), np.nan, np.float32)
    rasters = open_rasters(write(tmp_path / "pixels.tif", nothing, nodata=np.nan))
    result = map_rasters(WindowSum(("pixels",)), rasters, tmp_path / "map.tif", workers=1)
    assert np.isnan(read(result.path)).all() and "empty" in result.notes[0]


def test_progress_ends_at_the_last_tile(rasters, tmp_path):
    told = []
    map_rasters(WindowSum(BANDS), rasters, tmp_path / "map.tif", tile=64, workers=1, progress=told.append)
    assert told[-1].done == told[-1].total == 12 and told[-1].seconds_left == 0
    assert [step.done for step in told] == list(range(1, 13))


def test_names_that_a_map_cannot_have(rasters, tmp_path):
    with pytest.raises(MiradaError, match=r"ends in .tif"):
        map_rasters(WindowSum(BANDS), rasters, tmp_path / "map.png")
    with pytest.raises(MiradaError, match="one of the rasters"):
        map_rasters(WindowSum(BANDS), rasters, tmp_path / "pixels.tif")
    (tmp_path / "file").write_text("")
    with pytest.raises(MiradaError, match=r"map.tif: cannot be written .*choose another folder"):
        map_rasters(WindowSum(BANDS), rasters, tmp_path / "file" / "map.tif")


def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(rasters, tmp_path, monkeypatch):
    from mirada.verbs.maps import write as writing

    left = [3]

    def sync(file):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        file.flush()

    monkeypatch.setattr(writing, "_sync", sync)
    with pytest.raises(MiradaError, match=r"the disk is full; .* finished tiles are kept"):
        map_rasters(WindowSum(BANDS), rasters, tmp_path / "map.tif", tile=64, workers=1)
    monkeypatch.undo()
    again = map_rasters(WindowSum(BANDS), rasters, tmp_path / "map.tif", tile=64, workers=1)
    whole = map_rasters(WindowSum(BANDS), rasters, tmp_path / "whole.tif", tile=64, workers=1)
    assert again.num_kept == 1 and again.path.read_bytes() == whole.path.read_bytes()


def test_only_the_same_map_is_gone_on_with(rasters, tmp_path):
    class Stops(WindowSum):
        def predict(self, layers_LHW):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_rasters(Stops(BANDS), rasters, tmp_path / "map.tif", tile=64, workers=1)
    other = WindowSum(BANDS)
    other.identity = "another model"
    with pytest.raises(MiradaError, match=r"unfinished.jsonl belongs to another map \(not the same: model, tile\)"):
        map_rasters(other, rasters, tmp_path / "map.tif", tile=128, workers=1)
    swapped = dataclasses.replace(rasters, bands=rasters.bands[::-1])
    assert map_rasters(WindowSum(BANDS), swapped, tmp_path / "map.tif", tile=64, workers=1).num_empty == 1
