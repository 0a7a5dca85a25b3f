"""What a look at plots says before training."""

import json

import numpy as np
import pytest
from tests.places import plots_at, scattered

from mirada.data.geo.check import extent_of, inspect_plots, require_trainable_plots, spacing_of
from mirada.data.geo.check_render import render_plots
from mirada.data.geo.chips import Chips
from mirada.errors import MiradaError


def warnings_for(**changes):
    return " ".join(inspect_plots(plots_at(scattered(100), **changes)).warnings)


def test_counts_and_places():
    lonlat = scattered(100)
    lonlat[7] = lonlat[3]
    found = inspect_plots(plots_at(lonlat, notes=("read from a file.",)))
    assert (found.num_rows, found.num_repeated, found.kind, found.crs) == (100, 1, "csv", "EPSG:4326")
    west, south, east, north = found.extent
    assert (west, south) == tuple(lonlat.min(axis=0)) and (east, north) == tuple(lonlat.max(axis=0))
    assert found.target.mean == 49.5 and found.target.zero == 0.01
    assert found.num_blocks >= 20 and not found.problems and not found.warnings
    assert json.loads(json.dumps(found.to_dict()))["covariates"]["rain"]["missing"] == 0
    text = render_plots(found)
    assert "100 plots (csv), richness to predict" in text and "1 plots lie exactly" in text
    assert "note: read from a file." in text and text.endswith("ready to train")


def test_the_extent_may_cross_the_antimeridian():
    west, _, east, _ = extent_of(scattered(50, west=175))
    assert 175 <= west <= 180 and -180 <= east <= -165


def test_spacing_tells_clusters_from_grids():
    random = spacing_of(scattered(2000, width=2, height=2))
    steps = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 40)), axis=-1).reshape(-1, 2)
    centres = np.repeat(scattered(20), 50, axis=0)
    clusters = centres + np.random.default_rng(0).normal(scale=0.01, size=centres.shape)
    assert random[0] == pytest.approx(1, abs=0.1)
    assert spacing_of(steps)[0] > 1.8 and spacing_of(clusters)[0] < 0.3
    assert random[1] == pytest.approx(2 * 2 * 111.2**2 * np.cos(np.radians(41)), rel=0.03)
    assert spacing_of(np.stack([np.zeros(30), np.linspace(0, 1, 30)], axis=1))[0] is None
    assert "clustered" in " ".join(inspect_plots(plots_at(clusters)).warnings)


def test_what_is_odd_about_values():
    covariates = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    assert not warnings_for(covariates_ND=covariates)
    broken = covariates.copy()
    broken[5, 0] = -9999
    assert "rain is -9999 in 1 % of its cells" in warnings_for(covariates_ND=broken)
    broken = covariates.copy()
    broken[:60, 1], broken[:, 0] = np.nan, 3
    said = warnings_for(covariates_ND=broken)
    assert "never vary: rain" in said and "missing more often than not: elev" in said
    broken = covariates.copy()
    broken[:, 1] = 2 * np.arange(100) + 1
    assert "say what the target is: elev" in warnings_for(covariates_ND=broken)


def test_what_is_odd_about_places():
    lonlat = scattered(100)
    lonlat[3] = 0
    assert "0° east" in " ".join(inspect_plots(plots_at(lonlat)).warnings)
    beside = np.array(["train", "test"] * 50)
    apart = np.where(scattered(100)[:, 0] < 20, "train", "test")
    assert "gaps are filled" in warnings_for(splits=beside)
    assert "gaps are filled" not in warnings_for(splits=apart)
    found = inspect_plots(plots_at(scattered(100), splits=beside))
    assert found.split_counts == {"train": 50, "val": 0, "test": 50} and "split     train 50" in render_plots(found)


def test_a_split_without_training_rows_is_a_problem():
    plots = plots_at(scattered(30), splits=np.array(["test"] * 30))
    found = inspect_plots(plots)
    assert len(found.problems) == 1 and "ready to train" not in render_plots(found)
    with pytest.raises(MiradaError, match=r"plots\.csv: the given split has no training rows"):
        require_trainable_plots(plots)
    require_trainable_plots(plots_at(scattered(30)))


def test_chips_are_looked_at():
    pixels = np.random.default_rng(0).normal(size=(100, 2, 3, 3)).astype(np.float32)
    pixels[:7, 0, 0, 0] = np.nan
    pixels[9, 1, 2, 2] = -32768
    places = np.zeros((100, 2, 3, 3), np.float32)
    found = inspect_plots(plots_at(scattered(100), chips=Chips(pixels, places, ("red", "green"))))
    assert found.chip_size == 3 and found.incomplete_chips == pytest.approx(0.07)
    assert found.bands["red"].missing == pytest.approx(7 / 900) and found.bands["green"].missing == 0
    assert any("band green is -32768" in warning for warning in found.warnings)
    assert "3 x 3 pixels, 2 bands; 7 % have pixels without data" in render_plots(found)
