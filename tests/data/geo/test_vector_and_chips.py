"""Points of GeoPackage and GeoJSON files, and ready chips."""

import numpy as np
import pytest
from tests.places import scattered

from mirada.data.geo.read_plots import is_plots, open_plots
from mirada.errors import MiradaError

NUM, SIZE, BANDS = 23, 5, 3


@pytest.fixture
def frame():
    geopandas = pytest.importorskip("geopandas")
    lonlat = scattered(NUM, west=-71, south=-30, width=4, height=3)
    attributes = {"richness": np.arange(NUM), "rain": np.linspace(0, 1, NUM), "lon": 0.0, "lat": 0.0}
    return geopandas.GeoDataFrame(attributes, geometry=geopandas.points_from_xy(*lonlat.T), crs=4326), lonlat


@pytest.mark.parametrize("name", ["a.gpkg", "a.geojson"])
def test_a_vector_file_says_its_crs(tmp_path, frame, name):
    points, lonlat = frame
    points.to_file(tmp_path / name)
    plots = open_plots(tmp_path / name)
    assert is_plots(tmp_path / name) and plots.kind == name[2:]
    assert (plots.crs, plots.target_name, plots.covariate_names) == ("EPSG:4326", "richness", ("rain",))
    assert np.allclose(plots.lonlat_N2, lonlat, atol=1e-6)


def test_a_projected_geopackage(tmp_path, frame):
    points, lonlat = frame
    points.to_crs(32719).to_file(tmp_path / "a.gpkg")
    plots = open_plots(tmp_path / "a.gpkg")
    assert plots.crs == "EPSG:32719" and plots.xy_N2.max() > 1e6
    assert np.allclose(plots.lonlat_N2, lonlat, atol=1e-7)
    with pytest.raises(MiradaError, match=r"EPSG:4326 but the file says EPSG:32719; leave crs out"):
        open_plots(tmp_path / "a.gpkg", crs="EPSG:4326")


def test_rows_without_a_point_are_left_out(tmp_path, frame):
    points, _ = frame
    points.loc[3, "geometry"] = None
    points.to_file(tmp_path / "a.gpkg")
    plots = open_plots(tmp_path / "a.gpkg")
    assert len(plots) == NUM - 1 and 3 not in plots.targets_N


def test_what_is_refused_in_vector_files(tmp_path, frame):
    points, _ = frame
    points.set_geometry(points.to_crs(32719).buffer(1000), crs=32719).to_file(tmp_path / "areas.gpkg")
    with pytest.raises(MiradaError, match=r"areas\.gpkg: holds Polygon, expected points"):
        open_plots(tmp_path / "areas.gpkg")
    for layer in ("north", "south"):
        points.to_file(tmp_path / "two.gpkg", layer=layer)
    with pytest.raises(MiradaError, match="north, south"):
        open_plots(tmp_path / "two.gpkg")
    (tmp_path / "broken.gpkg").write_bytes(b"not a database")
    with pytest.raises(MiradaError, match="not a readable"):
        open_plots(tmp_path / "broken.gpkg")
    points.to_file(tmp_path / "a.gpkg")
    with pytest.raises(MiradaError, match="x and y have no meaning"):
        open_plots(tmp_path / "a.gpkg", x="lon", y="lat")


def test_a_geopackage_without_a_crs_needs_one(tmp_path, frame):
    pyogrio = pytest.importorskip("pyogrio")
    points, lonlat = frame
    with pytest.warns(UserWarning, match="crs"):
        pyogrio.write_dataframe(points.set_crs(None, allow_override=True), tmp_path / "a.gpkg")
    with pytest.raises(MiradaError, match="does not say which crs"):
        open_plots(tmp_path / "a.gpkg")
    assert np.allclose(open_plots(tmp_path / "a.gpkg", crs="EPSG:4326").lonlat_N2, lonlat)


def archive(path, **changes):
    lonlat = scattered(NUM)
    arrays = {
        "chips": np.random.default_rng(0).normal(size=(NUM, BANDS, SIZE, SIZE)).astype(np.float32),
        "y": np.arange(NUM),
        "lon": lonlat[:, 0],
        "lat": lonlat[:, 1],
        **changes,
    }
    arrays = {key: value for key, value in arrays.items() if value is not None}
    np.savez(path, **arrays)
    return arrays


def test_ready_chips(tmp_path):
    made = archive(tmp_path / "a.npz", year=np.full(NUM, 2015), band_names=np.array(["red", "green", "blue"]))
    plots = open_plots(tmp_path / "a.npz")
    assert is_plots(tmp_path / "a.npz") and plots.kind == "npz" and plots.target_name == "y"
    assert plots.chips is not None and plots.chips.band_names == ("red", "green", "blue")
    assert np.array_equal(plots.chips.pixels_NCHW, made["chips"])
    assert np.array_equal(plots.chips.lonlat_N2HW[:, 0, 1, 4], made["lon"].astype(np.float32))
    assert plots.covariate_names == ("year",) and any("all share that of the middle" in note for note in plots.notes)
    assert open_plots(tmp_path / "a.npz", covariates=()).covariate_names == ()


@pytest.mark.parametrize("layout", ["lonlat N2HW", "lonlat NHW2", "lon and lat NHW"])
def test_bands_last_and_a_place_for_each_pixel(tmp_path, layout):
    first = archive(tmp_path / "a.npz")
    lonlat = scattered(NUM)[:, :, None, None] + 0.01 * np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    places = {
        "lonlat N2HW": {"lonlat": lonlat, "lon": None, "lat": None},
        "lonlat NHW2": {"lonlat": lonlat.transpose(0, 2, 3, 1), "lon": None, "lat": None},
        "lon and lat NHW": {"lon": lonlat[:, 0], "lat": lonlat[:, 1]},
    }[layout]
    archive(tmp_path / "b.npz", chips=first["chips"].transpose(0, 2, 3, 1), **places)
    plots = open_plots(tmp_path / "b.npz")
    assert plots.chips is not None and np.array_equal(plots.chips.pixels_NCHW, first["chips"])
    assert np.array_equal(plots.chips.lonlat_N2HW, lonlat.astype(np.float32))
    assert np.array_equal(plots.lonlat_N2, lonlat[:, :, 2, 2]) and plots.notes == ()


def test_nodata_in_chips(tmp_path):
    chips = np.ones((NUM, BANDS, SIZE, SIZE), np.int16)
    chips[3, 1, 0, 0] = chips[5, 2, 2, 2] = -9999
    archive(tmp_path / "a.npz", chips=chips, nodata=-9999)
    plots = open_plots(tmp_path / "a.npz")
    assert plots.chips is not None and len(plots) == NUM - 1 and 5 not in plots.targets_N
    assert np.argwhere(np.isnan(plots.chips.pixels_NCHW)).tolist() == [[3, 1, 0, 0]]
    assert any("no data in the middle" in note for note in plots.notes)


def test_what_is_refused_in_archives(tmp_path):
    cube = np.zeros((NUM, SIZE, SIZE, SIZE), np.float32)
    wrong = {
        "layout": {"chips": cube},
        "odd size": {"chips": np.zeros((NUM, BANDS, 4, 4), np.float32)},
        "swapped": {"lon": np.linspace(10, 20, NUM), "lat": np.linspace(100, 120, NUM)},
        "y has shape": {"y": np.arange(NUM + 1)},
        "band_names": {"band_names": np.array(["red"])},
        "coordinates have shape": {"lon": np.zeros((NUM, 3)), "lat": np.zeros((NUM, 3))},
        "none is target": {"y": None, "z": np.arange(NUM)},
        "must hold train": {"split": np.array(["north"] * NUM)},
    }
    for words, changes in wrong.items():
        archive(tmp_path / "a.npz", **changes)
        with pytest.raises(MiradaError, match=words):
            open_plots(tmp_path / "a.npz")
    archive(tmp_path / "a.npz", chips=cube, layout="NHWC")
    assert len(open_plots(tmp_path / "a.npz")) == NUM
    with pytest.raises(MiradaError, match="leave crs out"):
        open_plots(tmp_path / "a.npz", crs="EPSG:4326")
    np.savez(tmp_path / "images.npz", x=np.zeros((5, 3, 3)), y=np.zeros(5))
    assert not is_plots(tmp_path / "images.npz")


def test_chips_are_cut_from_rasters(real_data):
    pytest.importorskip("rasterio")
    rasters = [real_data("geo/americas_bioclim.tif")]
    plots = open_plots(real_data("geo/south_america_plant_richness.csv"), rasters=rasters, chip_size=9)
    assert plots.chips is not None and plots.chips.pixels_NCHW.shape == (703, 9, 9, 9)
    assert np.isfinite(plots.chips.pixels_NCHW).all(axis=(1, 2, 3)).sum() == 345
    assert np.abs(plots.chips.lonlat_N2HW[:, :, 4, 4] - plots.lonlat_N2).max() <= 0.25 + 1e-4  # pixels of half a degree
