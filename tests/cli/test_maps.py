"""Plots through the verbs of the command line."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("rasterio")

from tests.geotiffs import UTM
from tests.verbs.maps import plots_run

READING = ("--rasters", "country.tif", "--target", "richness", f"data.crs={UTM}")


@pytest.fixture
def country(empty_folder: Path) -> Path:
    for name in ("country.tif", "soil.tif", "plots.csv"):
        os.link(plots_run.country() / name, name)
    return empty_folder


def test_check_shows_places_values_and_chips(mirada, country):
    checked = mirada("check", "plots.csv", *READING, "data.chip_size=3")
    assert checked.exit_code == 0, checked.stderr
    assert f"{plots_run.NUM} plots (csv), richness to predict" in checked.stdout and "ready to train" in checked.stdout
    assert "3 x 3 pixels, 2 bands" in checked.stdout
    found = json.loads(mirada("check", "plots.csv", *READING, "--json").stdout)
    assert found["crs"] == UTM and list(found["covariates"]) == ["soil"]


def test_train_ends_with_schemes_and_models_side_by_side(mirada, country):
    with plots_run.quick_stages():
        trained = mirada("train", "plots.csv", *READING, *plots_run.OURS, "-o", "run", "maps.schemes=[random,blocked]")
    assert trained.exit_code == 0, trained.stderr
    assert "Preset maps: 80 plots, 1 covariates, 2 bands around each." in trained.stdout
    assert "test plots" in trained.stdout and "plots/s" in trained.stdout and "images" not in trained.stdout
    assert "Validation: blocked, fold 2 of 2" in trained.stdout
    for heading in ("held out", "model", "nearest plots", "random forest", "boosting"):
        assert heading in trained.stdout
    assert "random, 2 folds" in trained.stdout and "blocked, 2 folds" in trained.stdout
    assert "80 % intervals held" in trained.stdout


@pytest.mark.long
def test_map_names_its_files_and_says_what_to_know(mirada, country):
    made = mirada("map", plots_run.run(), "country.tif", "soil.tif", "-o", "richness.tif", "--workers", 1)
    assert made.exit_code == 0, made.stderr
    assert "90 × 150 pixels: prediction, low, high, spread, applicability" in made.stdout
    for name in ("richness.tif", "richness.png", "richness.html"):
        assert f"wrote {name}" in made.stdout and (country / name).exists()
    words = ("--set", "soil=3", "--samples", 2, "--tile", 100, "--workers", 1)
    unchecked = mirada("map", plots_run.run(plots_run.NO_VALIDATION), "country.tif", "-o", "other.tif", *words)
    assert unchecked.exit_code == 0, unchecked.stderr
    assert "note: The run has no validation" in unchecked.stdout and "mapped 2 tiles" in unchecked.stdout
    quiet = mirada("map", plots_run.run(), "country.tif", "soil.tif", "-o", "quiet.tif", "--workers", 1, "--quiet")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_predict_and_evaluate(mirada, country):
    header, *lines = (country / "plots.csv").read_text().splitlines()
    (country / "other.csv").write_text("\n".join([header, *lines[:11]]) + "\n")
    (country / "bare.csv").write_text("x,y\n520500,5990500\n100,5990500\n")
    shutil.copytree(plots_run.run(), "run")
    measured = mirada("evaluate", "run", "other.csv")
    assert measured.exit_code == 0, measured.stderr
    assert measured.stdout.startswith("r2 ") and "on 11 plots of other.csv" in measured.stdout
    rasters = ("--rasters", "country.tif", "--rasters", "soil.tif")
    answered = mirada("predict", plots_run.run(), "bare.csv", *rasters, "-o", "answers.csv")
    assert answered.exit_code == 0, answered.stderr
    assert answered.stdout == "wrote 2 rows to answers.csv\n"
    assert "bare.csv[1] lies outside the rasters.\nmirada: 1 of 2 points have no answer." in answered.stderr
    rows = list(csv.DictReader((country / "answers.csv").read_text().splitlines()))
    assert rows[0]["area"] in ("inside", "outside") and rows[1]["predicted_richness"] == ""
    shown = mirada("predict", plots_run.run(), "bare.csv", *rasters)
    assert "no answer" in shown.stdout and "predicted richness" in shown.stdout
