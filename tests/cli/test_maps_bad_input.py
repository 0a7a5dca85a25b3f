"""What is wrong with plots, rasters or the request for a map ends in one sentence, exit code 2, and nothing written."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rasterio")

from rasterio.transform import from_origin

from tests.cli.test_bad_input import assert_refused, files_below
from tests.geotiffs import UTM, numbers, write
from tests.verbs.maps import plots_run

UTM_PLOTS = ("--rasters", "country.tif", f"data.crs={UTM}", "--target", "richness")
LONLAT = {"lon": [147 + n / 100 for n in range(30)], "lat": [-36 - n / 100 for n in range(30)]}


def table(name: str, **columns) -> None:
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def country(empty_folder: Path) -> Path:
    """The small country and its plots, and what is wrong with copies of them."""
    for name in ("country.tif", "soil.tif", "plots.csv"):
        os.link(plots_run.country() / name, name)
    rows = (empty_folder / "plots.csv").read_text().splitlines()
    (empty_folder / "empty.csv").write_text("")
    (empty_folder / "header.csv").write_text(rows[0] + "\n")
    (empty_folder / "few.csv").write_text("\n".join(rows[:13]) + "\n")
    (empty_folder / "text.tif").write_text("this is no raster")
    (empty_folder / "cut.tif").write_bytes((empty_folder / "country.tif").read_bytes()[:300])
    table("nowhere.csv", elevation=range(30), richness=range(30))
    table("swapped.csv", lon=LONLAT["lat"], lat=LONLAT["lon"], richness=range(30))
    table("far.csv", lon=[10 + n for n in range(30)], lat=LONLAT["lat"], richness=range(30))
    table("constant.csv", **LONLAT, rain=range(30), richness=[7] * 30)
    table("negative.csv", **LONLAT, rain=range(30), richness=range(-5, 25))
    table("unknown.csv", **LONLAT, rain=range(30), richness=["?"] * 30)
    table("blank.csv", lon=[""] * 30, lat=[""] * 30, richness=range(30))
    table("words.csv", **LONLAT, richness=["many"] * 30)
    table("two.csv", **LONLAT, rain=range(30), snow=range(30))
    table("points.csv", easting=[520_500], northing=[5_990_500])
    pixels = numbers(2, 90, 150)
    write(empty_folder / "nocrs.tif", pixels, crs=None)
    write(empty_folder / "one.tif", pixels[:1], names=("rain",))
    write(empty_folder / "scaled.tif", 10_000 + pixels, names=("rain", "heat"))
    write(empty_folder / "nodata.tif", np.full_like(pixels, np.nan), nodata=np.nan)
    write(empty_folder / "elsewhere.tif", pixels, transform=from_origin(100_000, 9_000_000, 1000, 1000))
    return empty_folder


TRAINING = {
    "no file": (["plot.csv", "--rasters", "country.tif"], "plot.csv: no such file"),
    "empty table": (["empty.csv", "--rasters", "country.tif"], "empty.csv: the table is empty"),
    "header only": (["header.csv", *UTM_PLOTS], "header.csv: the table has a header but no rows"),
    "no coordinates": (["nowhere.csv", "--rasters", "country.tif"], "no coordinates among the columns"),
    "no crs": (["plots.csv", "--rasters", "country.tif", "--target", "richness"], "say nothing about the crs"),
    "unknown crs": (["plots.csv", "--target", "richness", "data.crs=EPSG:1"], "crs is 'EPSG:1', which is not known"),
    "swapped coordinates": (["swapped.csv"], "look swapped"),
    "coordinates blank": (["blank.csv", "--rasters", "country.tif"], "no row has numbers in both lon and lat"),
    "too few": (["few.csv", *UTM_PLOTS], "12 usable points are too few"),
    "constant target": (["constant.csv"], "richness is 7 in every row"),
    "target without numbers": (["unknown.csv", "--target", "richness"], "richness holds nothing, expected numbers"),
    "target of words": (["words.csv", "--target", "richness", "--rasters", "country.tif"], "text such as 'many'"),
    "which target": (["two.csv"], "none says by its name that it is the target"),
    "no such target": (["plots.csv", *UTM_PLOTS[:3], "--target", "richnes"], "did you mean 'richness'"),
    "no such covariate": (["plots.csv", *UTM_PLOTS, "data.covariates=[sand]"], "there is no column 'sand'"),
    "no such raster": (["plots.csv", *UTM_PLOTS[2:], "--rasters", "contry.tif"], "contry.tif does not exist"),
    "text as raster": (["plots.csv", *UTM_PLOTS[2:], "--rasters", "text.tif"], "text.tif is not a raster"),
    "raster cut short": (["plots.csv", *UTM_PLOTS[2:], "--rasters", "cut.tif"], "cut.tif"),
    "raster without crs": (["plots.csv", *UTM_PLOTS[2:], "--rasters", "nocrs.tif"], "no coordinate reference system"),
    "raster without data": (["plots.csv", *UTM_PLOTS[2:], "--rasters", "nodata.tif"], "pixels without data"),
    "rasters apart": (["plots.csv", *UTM_PLOTS, "--rasters", "elsewhere.tif"], "does not overlap with country.tif"),
    "points outside": (["far.csv", "--rasters", "country.tif"], "none of the 30 points lies inside the rasters"),
    "even chips": (["plots.csv", *UTM_PLOTS, "data.chip_size=4"], "an odd number"),
    "no chips": (["plots.csv", *UTM_PLOTS, "data.chip_size=0"], "'data.chip_size' is 0"),
    "negative counts": (["negative.csv", "maps.head=count"], "goes down to -5, but head 'count' is for numbers from 0"),
    "unknown scheme": (["plots.csv", *UTM_PLOTS, "maps.scheme=blocks"], "'maps.scheme' is 'blocks'"),
    "images' system": (["plots.csv", *UTM_PLOTS, "--system", "vit"], "takes images, but plots.csv holds plots"),
    "paper with covariates": (["plots.csv", *UTM_PLOTS, "--system", "spatioformer_paper"], "takes no covariates"),
    "paper without rasters": (
        ["plots.csv", *UTM_PLOTS[2:], "--system", "spatioformer_paper"],
        "spatioformer_paper sees rasters only",
    ),
    "two targets": (["plots.csv", *UTM_PLOTS[:3], "data.label_column=[soil,richness]"], "plots have one target"),
}


@pytest.mark.parametrize("case", list(TRAINING))
def test_bad_plots_are_refused_before_anything_is_written(mirada, country, case):
    words, message = TRAINING[case]
    before = files_below(country)
    assert_refused(mirada("train", *words, "train.steps=1"), message)
    assert files_below(country) == before


CHECKED = [case for case, (words, _) in TRAINING.items() if not any(w.startswith(("--system", "maps.")) for w in words)]


@pytest.mark.parametrize("case", CHECKED)
def test_check_refuses_them_too(mirada, country, case):
    words, message = TRAINING[case]
    assert_refused(mirada("check", *words), message)


MAPPING = {
    "no run": (["runs/x", "country.tif", "-o", "map.tif"], "runs/x: there is no such folder"),
    "no raster": (["RUN", "contry.tif", "-o", "map.tif"], "contry.tif does not exist"),
    "text as raster": (["RUN", "text.tif", "-o", "map.tif"], "text.tif is not a raster"),
    "raster without crs": (["RUN", "nocrs.tif", "-o", "map.tif"], "no coordinate reference system"),
    "covariate missing": (["RUN", "country.tif", "-o", "map.tif"], "no band is called soil"),
    "band missing": (["RUN", "one.tif", "soil.tif", "-o", "map.tif"], "heat is missing"),
    "another scale": (["RUN", "scaled.tif", "soil.tif", "-o", "map.tif"], "wrong reflectance scale or unit"),
    "rasters apart": (["RUN", "country.tif", "elsewhere.tif", "-o", "map.tif"], "does not overlap"),
    "not a GeoTIFF": (["RUN", "country.tif", "soil.tif", "-o", "map.png"], "map.png: a map is a GeoTIFF"),
    "over a raster": (["RUN", "country.tif", "soil.tif", "-o", "soil.tif"], "is one of the rasters that are mapped"),
    "below a file": (["RUN", "country.tif", "soil.tif", "-o", "plots.csv/map.tif"], "plots.csv/map.tif"),
    "no scheduler": (
        ["RUN", "country.tif", "soil.tif", "-o", "map.tif", "--scheduler", "nowhere"],
        "scheduler nowhere does not answer",
    ),
    "one draw": (["RUN", "country.tif", "soil.tif", "-o", "map.tif", "--samples", "1"], "needs 2 draws or more"),
    "no such covariate": (
        ["RUN", "country.tif", "-o", "map.tif", "--set", "sail=3"],
        "has no covariate 'sail' (did you mean 'soil'",
    ),
    "no number": (["RUN", "country.tif", "-o", "map.tif", "--set", "soil=wet"], "such as year=2020"),
}


@pytest.mark.parametrize("case", list(MAPPING))
def test_bad_request_for_a_map_is_refused(mirada, country, case):
    words, message = MAPPING[case]
    before = files_below(country)
    assert_refused(mirada("map", *(plots_run.run() if word == "RUN" else word for word in words)), message)
    assert all(".unfinished." in name for name in files_below(country) - before)  # of what may be gone on with


def test_a_run_on_images_has_no_map(mirada, run, country):
    assert_refused(mirada("map", run, "country.tif", "-o", "map.tif"), "was not trained on plots, so it has no map")
    assert_refused(mirada("predict", run, "plots.csv", "--rasters", "country.tif"), "leave the rasters out")


def test_bad_points_are_refused(mirada, country):
    run = plots_run.run()
    for words, message in (
        (["predict", run, "points.csv"], "no band is called soil"),
        (["predict", run, "point.csv"], "point.csv: no such file"),
        (["predict", run, "points.csv", "plots.csv"], "about one file of points at a time"),
        (["predict", run, "country.tif"], "country.tif: cannot read .tif"),
        (["predict", run, "swapped.csv"], "look swapped"),
        (["predict", run, "blank.csv"], "no row can be used; the first has no number in lon or lat"),
        (["evaluate", run, "points.csv"], "there is no column 'richness' (target)"),
        (["evaluate", run, "plots.csv", "train.steps=3"], "setting 'train' has no meaning for evaluating on plots"),
        (["export", run, "--to", "onnx"], "models of plots are exported to safetensors only"),
        (["export", run, "--to", "transformers", "-o", "model"], "spatioformer"),
    ):
        assert_refused(mirada(*words), message)
