"""Samples with a place, out of tables: which column is what, which CRS, and what must not pass in silence."""

import importlib

import numpy as np
import pytest
from PIL import Image
from tests.places import plots_at, scattered, write_csv

from mirada.data.geo.read_plots import is_plots, open_plots
from mirada.data.text.sources import is_text
from mirada.errors import MiradaError

NUM = 23


def table(**changes):
    """Columns of a plausible table; a column that is None is left out."""
    lonlat = scattered(NUM, west=-70, south=-30)
    rain = np.random.default_rng(1).normal(size=NUM)
    columns = {"Lon": lonlat[:, 0], "Lat": lonlat[:, 1], "rain": rain, "richness": range(NUM), **changes}
    return {name: cells for name, cells in columns.items() if cells is not None}


def refused(tmp_path, columns, *words, **options):
    path = write_csv(tmp_path / "plots.csv", columns)
    with pytest.raises(MiradaError) as raised:
        open_plots(path, **options)
    assert "plots.csv" in str(raised.value) or "crs" in str(raised.value)
    for word in words:
        assert word in str(raised.value)


def replaced(cells, row, value):
    return [value if i == row else cell for i, cell in enumerate(cells)]


def test_columns_are_found_by_name(tmp_path):
    columns = table(Country=["Peru"] * NUM, PlotID=range(100, 100 + NUM))
    plots = open_plots(write_csv(tmp_path / "plots.csv", columns))
    assert (plots.kind, plots.crs, plots.target_name, plots.covariate_names) == (
        "csv",
        "EPSG:4326",
        "richness",
        ("rain",),
    )
    assert np.array_equal(plots.xy_N2, plots.lonlat_N2)
    assert np.array_equal(plots.lonlat_N2[:, 0], columns["Lon"])
    assert plots.targets_N.dtype == plots.covariates_ND.dtype == np.float32
    assert plots.name(3) == "103"
    assert "not used: Country, PlotID" in plots.notes[0]


@pytest.mark.parametrize(
    ("x", "y"), [("LONGITUDE", "Latitude"), ("decimalLongitude", "decimalLatitude"), ("lng", "lat")]
)
def test_degrees_have_many_names(tmp_path, x, y):
    lonlat = scattered(NUM)
    columns = {x: lonlat[:, 0], y: lonlat[:, 1], "value": range(NUM)}
    assert np.array_equal(open_plots(write_csv(tmp_path / "plots.csv", columns)).lonlat_N2, lonlat)


def test_semicolons_tabs_and_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    columns = table()
    csv = open_plots(write_csv(tmp_path / "a.csv", columns, ";"))
    tsv = open_plots(write_csv(tmp_path / "a.tsv", columns, "\t"))
    arrays = pyarrow.table({name: list(cells) for name, cells in columns.items()})
    importlib.import_module("pyarrow.parquet").write_table(arrays, tmp_path / "a.parquet")
    parquet = open_plots(tmp_path / "a.parquet")
    assert csv.checksum() == tsv.checksum() == parquet.checksum()
    assert parquet.kind == "parquet" and is_plots(tmp_path / "a.parquet")
    assert not is_text(tmp_path / "a.parquet")


def test_degrees_come_before_metres(tmp_path):
    columns = table(x=range(1000, 1000 + NUM), y=range(2000, 2000 + NUM))
    plots = open_plots(write_csv(tmp_path / "plots.csv", columns))
    assert plots.crs == "EPSG:4326" and plots.covariate_names == ("rain",)
    assert open_plots(tmp_path / "plots.csv", target="y").target_name == "y"


def test_a_crs_in_metres_asks_for_the_map_coordinates(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    lonlat = scattered(NUM, west=-71, south=-30, width=4, height=3)
    east, north = pyproj.Transformer.from_crs(4326, 32719, always_xy=True).transform(*lonlat.T)
    columns = table(Lon=lonlat[:, 0], Lat=lonlat[:, 1], Easting=east, Northing=north)
    plots = open_plots(write_csv(tmp_path / "plots.csv", columns), crs="epsg:32719")
    assert plots.crs == "EPSG:32719" and np.array_equal(plots.xy_N2[:, 0], east)
    assert np.allclose(plots.lonlat_N2, lonlat, atol=1e-7)


def test_longitudes_beyond_180_are_counted_to_the_west(tmp_path):
    lon = np.linspace(170, 190, NUM)
    plots = open_plots(write_csv(tmp_path / "plots.csv", table(Lon=lon)))
    assert np.allclose(plots.lonlat_N2[-1, 0], -170) and np.array_equal(plots.xy_N2, plots.lonlat_N2)


def test_the_year_is_a_covariate(tmp_path):
    dates = [f"{2000 + i}-03-02" for i in range(NUM)]
    plots = open_plots(write_csv(tmp_path / "plots.csv", table(Date=dates)))
    assert plots.covariate_names == ("rain", "year") and plots.covariates_ND[5, 1] == 2005
    numbers = open_plots(write_csv(tmp_path / "plots.csv", table(Year=range(1990, 1990 + NUM), Date=dates)))
    assert numbers.covariate_names == ("rain", "year") and numbers.covariates_ND[5, 1] == 1995


def test_covariates_are_those_given(tmp_path):
    path = write_csv(tmp_path / "plots.csv", table(elev=replaced(range(NUM), 4, "NA")))
    elev = open_plots(path, covariates="elev")
    assert elev.covariate_names == ("elev",) and np.flatnonzero(np.isnan(elev.covariates_ND)).tolist() == [4]
    assert open_plots(path, covariates=()).covariates_ND.shape == (NUM, 0)


def test_a_column_may_give_the_split(tmp_path):
    splits = ["train"] * 10 + ["validation"] * 5 + ["test"] * (NUM - 15)
    plots = open_plots(write_csv(tmp_path / "plots.csv", table(split=splits)))
    assert plots.splits is not None and plots.splits[12] == "val"
    folds = open_plots(write_csv(tmp_path / "plots.csv", table(fold=[i % 5 for i in range(NUM)])))
    assert folds.splits is None and folds.covariate_names == ("rain",)


def test_rows_without_a_number_are_left_out_with_a_note(tmp_path):
    whole = table()
    columns = table(Lat=replaced(whole["Lat"], 2, "unknown"), richness=replaced(range(NUM), 7, ""))
    plots = open_plots(write_csv(tmp_path / "plots.csv", columns))
    assert plots.targets_N.tolist() == [i for i in range(NUM) if i not in (2, 7)]
    assert any("1 of 23 rows have no number in coordinates" in note for note in plots.notes)
    assert any("1 of 23 rows have no number in richness" in note for note in plots.notes)


def test_repeated_places_are_noted(tmp_path):
    whole = table()
    columns = {name: replaced(whole[name], 3, whole[name][0]) for name in ("Lon", "Lat")}
    plots = open_plots(write_csv(tmp_path / "plots.csv", table(**columns)))
    assert any("1 of 23 rows lie exactly where another one does" in note for note in plots.notes)


def test_what_is_refused(tmp_path):
    lon, lat = table()["Lon"], table()["Lat"]
    metres = [500_000 + i for i in range(NUM)]
    refused(tmp_path, table(Lon=np.linspace(-40, -50, NUM), Lat=np.linspace(100, 170, NUM)), "swapped", "Lat")
    refused(tmp_path, table(Lon=metres, Lat=metres), "no degrees", "crs")
    refused(tmp_path, table(Lon=replaced(lon, 4, 500_000), Lat=replaced(lat, 4, 7e6)), "1 of 23", "one crs")
    refused(tmp_path, table(Lon=None, Lat=None), "no coordinates", "rain, richness")
    refused(tmp_path, table(Lon=None, Lat=None, x=metres, y=metres), "crs=EPSG:4326")
    refused(tmp_path, table(Lon=["west"] * NUM), "no row has numbers", "Lon")
    refused(tmp_path, table(richness=[3] * NUM), "richness is 3 in every row")
    refused(tmp_path, table(richness=["many"] * NUM), "'many'", target="richness")
    refused(tmp_path, {name: list(cells)[:19] for name, cells in table().items()}, "19 usable points", "20")
    refused(tmp_path, table(), "x is Lat", x="Lat", y="Lon")
    refused(tmp_path, table(), "both", x="Lon")
    refused(tmp_path, table(), "did you mean 'rain'", target="rian")
    refused(tmp_path, table(), "'many'", covariates=["many"])
    refused(tmp_path, table(), "cannot be a covariate", covariates=["richness"])
    refused(tmp_path, table(value=range(NUM)), "richness, value", "several")
    refused(tmp_path, table(richness=None, elev=range(NUM)), "rain, elev", "give target")
    refused(tmp_path, table(richness=None, rain=None), "no column of numbers")


def test_what_is_refused_in_metres(tmp_path):
    pytest.importorskip("pyproj")
    lonlat = table()
    east, north = [500_000 + 1000 * i for i in range(NUM)], [6_700_000 + 1000 * i for i in range(NUM)]
    refused(tmp_path, table(), "could be degrees", crs="EPSG:32719")
    metres = {"Lon": None, "Lat": None, "x": east, "y": north}
    zealand = {"x": [2_500_000 + 1000 * i for i in range(NUM)], "y": [6_500_000 + 1000 * i for i in range(NUM)]}
    refused(tmp_path, table(**metres | zealand), "swapped", x="y", y="x", crs="EPSG:27200")
    mixed = {"x": replaced(east, 3, lonlat["Lon"][3]), "y": replaced(north, 3, lonlat["Lat"][3])}
    refused(tmp_path, table(**metres | mixed), "1 of 23", "look like degrees", crs="EPSG:32719")
    refused(tmp_path, table(**metres), "not known", crs="EPSG:1")


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("mirada.data.geo.extra.find_spec", lambda name: None)
    assert len(open_plots(write_csv(tmp_path / "plots.csv", table()))) == NUM
    refused(tmp_path, table(), "pip install", "mirada[maps]", crs="EPSG:32719")


def test_only_tables_of_places_are_plots(tmp_path):
    assert is_plots(write_csv(tmp_path / "a.csv", table()))
    assert is_plots(write_csv(tmp_path / "a.csv", table(id=range(NUM))))
    assert not is_plots(tmp_path) and not is_plots(tmp_path / "missing.csv")
    others = [
        table(image=[f"{i}.png" for i in range(NUM)]),
        table(photo=[f"{i}.jpg" for i in range(NUM)]),
        table(Lon=None, Lat=None),
        table(richness=None, rain=None, species=["oak", *["elm"] * (NUM - 1)]),
        {"text": ["it rains"] * NUM, "lat": range(NUM), "lon": range(NUM), "label": range(NUM)},
        {"x": ["a"] * NUM, "y": range(NUM), "label": range(NUM)},
    ]
    for columns in others:
        assert not is_plots(write_csv(tmp_path / "b.csv", columns)), list(columns)
    assert is_plots(write_csv(tmp_path / "b.csv", others[3]), rasters=["a.tif"])
    Image.new("L", (2, 2)).save(tmp_path / "1.png")
    assert not is_plots(write_csv(tmp_path / "a.csv", table(id=range(NUM))))


def test_a_subset_and_a_checksum():
    plots = plots_at(scattered(7), splits=np.array(["train"] * 7), names=tuple("abcdefg"))
    some = plots.subset(np.array([4, 1]))
    assert some.targets_N.tolist() == [4, 1] and some.names == ("e", "b") and some.name(0) == "e"
    assert some.checksum() != plots.checksum() == plots.subset(np.arange(7)).checksum()
    assert plots.checksum() != plots_at(scattered(7), covariate_names=("rain", "snow")).checksum()


REAL = {
    "nz_plant_richness.csv": (19_120, "richness", 13, {}),
    "south_america_plant_richness.csv": (703, "richness", 11, {}),
    "air_temperature.csv": (3_076, "meanT", 6, {"target": "meanT"}),
    "australia/species.csv": (500, "occ", 0, {"crs": "EPSG:7845"}),
}


@pytest.mark.parametrize("name", REAL)
def test_real_tables_read_with_little_said(real_data, name):
    if "crs" in REAL[name][3]:
        pytest.importorskip("pyproj")
    path = real_data(f"geo/{name}")
    num, target, num_covariates, options = REAL[name]
    plots = open_plots(path, **options)
    assert is_plots(path)
    assert (len(plots), plots.target_name, len(plots.covariate_names)) == (num, target, num_covariates)
    assert not np.isnan(plots.covariates_ND).any()


def test_the_two_coordinates_of_new_zealand_agree(real_data):
    pytest.importorskip("pyproj")
    path = real_data("geo/nz_plant_richness.csv")
    degrees, metres = open_plots(path), open_plots(path, crs="EPSG:27200")
    assert np.abs(degrees.lonlat_N2 - metres.lonlat_N2).max() < 1e-4  # 10 m
    assert degrees.covariate_names == metres.covariate_names
