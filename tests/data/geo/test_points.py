"""Places that a model is asked about: no target, what it needs from columns, chips or rasters, and a reason per row."""

import numpy as np
import pytest
from tests.geotiffs import numbers, write
from tests.places import scattered, write_csv

from mirada.data.geo.read_points import Needs, open_points
from mirada.errors import MiradaError

NUM = 7  # fewer than one can train on
COVARIATES = Needs(bands=(), covariates=("rain", "year"), chip_size=1)


def columns(**changes):
    lonlat = scattered(NUM)
    found = {"lon": lonlat[:, 0], "lat": lonlat[:, 1], "Year": [2001] * NUM, "rain": range(NUM), **changes}
    return {name: cells for name, cells in found.items() if cells is not None}


def test_covariates_come_by_name_in_the_order_of_the_model_and_no_target_is_needed(tmp_path):
    points = open_points(write_csv(tmp_path / "new.csv", columns()), COVARIATES)
    assert points.plots.covariate_names == ("rain", "year") and len(points) == NUM and not points.reasons
    assert np.array_equal(points.plots.covariates_ND, [[n, 2001] for n in range(NUM)])
    assert np.isnan(points.plots.targets_N).all() and points.names[3] == "new.csv[3]"


def test_rows_without_a_place_are_kept_with_the_reason(tmp_path):
    changed = columns(site=list("abcdefg"))
    changed["lat"] = ["" if n == 2 else lat for n, lat in enumerate(changed["lat"])]
    points = open_points(write_csv(tmp_path / "new.csv", changed), COVARIATES)
    assert points.reasons == {2: "has no number in lon or lat"} and points.rows_N.tolist() == [0, 1, 3, 4, 5, 6]
    assert points.names == tuple("abcdefg") and points.plots.name(2) == "d"


def test_a_target_is_read_if_the_model_is_judged(tmp_path):
    path = write_csv(tmp_path / "new.csv", columns(richness=[5, "", 7, 8, 9, 10, 11]))
    points = open_points(path, Needs((), ("rain",), 1, target="richness"))
    assert points.plots.targets_N.tolist() == [5, 7, 8, 9, 10, 11] and points.reasons == {1: "has no richness"}
    with pytest.raises(MiradaError, match="no column 'height' \\(target\\)"):
        open_points(path, Needs((), ("rain",), 1, target="height"))


def test_degrees_of_other_points_do_not_take_the_crs_of_the_run(tmp_path):
    pytest.importorskip("pyproj")
    path = write_csv(tmp_path / "new.csv", columns(rain=None, Year=None))
    assert open_points(path, Needs((), (), 1), crs="EPSG:27200").plots.crs == "EPSG:4326"
    metres = write_csv(tmp_path / "metres.csv", {"x": [500_500.0], "y": [5_999_500.0]})
    points = open_points(metres, Needs((), (), 1), crs="EPSG:32755")
    assert points.plots.crs == "EPSG:32755" and abs(points.plots.lonlat_N2[0, 0] - 147) < 0.1


def test_what_no_column_has_comes_from_rasters(tmp_path):
    pytest.importorskip("rasterio")
    pixels = numbers(3, 20, 20)
    pixels[:, 5, 5] = np.nan
    raster = write(tmp_path / "sky.tif", pixels, nodata=np.nan, names=("red", "rain", "nir"))
    path = write_csv(
        tmp_path / "new.csv",
        {"x": [502_500, 505_500, 400_000], "y": [5_996_500, 5_994_500, 5_996_500], "elev": [1, 2, 3]},
    )
    needs = Needs(bands=("nir", "red"), covariates=("rain", "elev"), chip_size=3)
    points = open_points(path, needs, crs="EPSG:32755", rasters=[raster])
    assert points.rows_N.tolist() == [0]
    assert points.reasons == {1: "falls on a pixel without data", 2: "lies outside the rasters"}
    assert np.array_equal(points.plots.chips.pixels_NCHW[0], pixels[[2, 0], 2:5, 1:4])
    assert np.array_equal(points.plots.covariates_ND, [[pixels[1, 3, 2], 1]])
    with pytest.raises(MiradaError, match="the model also needs nir, red, rain; add columns, or give rasters"):
        open_points(path, needs, crs="EPSG:32755")
    with pytest.raises(MiradaError, match="no band is called snow"):
        open_points(path, Needs((), ("snow",), 1), crs="EPSG:32755", rasters=[raster])


def test_ready_chips_need_the_bands_of_the_model(tmp_path):
    lonlat = scattered(NUM)
    pixels = numbers(NUM, 2, 3, 3)
    pixels[4, 0, 1, 1] = np.nan
    path = tmp_path / "new.npz"
    np.savez(path, chips=pixels, lon=lonlat[:, 0], lat=lonlat[:, 1], band_names=["red", "nir"])
    points = open_points(path, Needs(("nir", "red"), (), 3))
    assert points.reasons == {4: "has no data in the middle of its chip"}
    assert np.array_equal(points.plots.chips.pixels_NCHW[4], pixels[5, ::-1])
    with pytest.raises(MiradaError, match="its chips have 2 bands, red, nir, but the model needs 1, blue"):
        open_points(path, Needs(("blue",), (), 3))
    with pytest.raises(MiradaError, match="3 pixels a side, but the model sees 9"):
        open_points(path, Needs(("nir", "red"), (), 9))


def test_points_of_nothing_but_geometry(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    lonlat = scattered(NUM)
    frame = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy(*lonlat.T), crs="EPSG:4326")
    frame.to_file(tmp_path / "new.geojson")
    points = open_points(tmp_path / "new.geojson", Needs((), (), 1))
    assert np.allclose(points.plots.lonlat_N2, lonlat, atol=1e-6)
