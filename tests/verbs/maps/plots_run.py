"""A small country of two bands, plots in it, and models trained on them for a moment: made once, used by many tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from mirada.tasks.field_baselines import BASELINES
from mirada.tasks.layers import Predict
from tests.geotiffs import UTM, write
from tests.places import write_csv

SIZE = (90, 150)  # pixels of 1 km, which no tile divides
BANDS = ("rain", "heat")
NUM = 80
SETTINGS = (
    *("system.arguments.dim=8", "system.arguments.depth=1", "system.arguments.num_heads=2", "train.device=cpu"),
    *("train.evaluations=2", "train.batch_size=32", "data.chip_size=3", "maps.block=20", "maps.folds=2"),
)
OURS = (*SETTINGS, "system.arguments.members=2", "train.steps=8", "maps.coverage=0.8")
PAPER = (
    *SETTINGS,
    *("system.name=spatioformer_paper", "system.arguments.mlp_dim=16", "system.arguments.head_dim=16"),
    *("train.steps=4", "train.epochs=null", "maps.schemes=[blocked]", "data.covariates=[]", "maps.coverage=0.8"),
)
NO_VALIDATION = (*OURS, "maps.folds=0")


def make_country(folder: Path) -> None:
    """country.tif with two bands, soil.tif with one, and plots.csv with the covariate soil and the target richness."""
    generator = np.random.default_rng(0)
    height, width = SIZE
    rows, cols = np.mgrid[:height, :width]
    rain = 100 + 30 * np.sin(cols / 20) + generator.normal(0, 3, SIZE)
    heat = 15 + 8 * np.cos(rows / 15) + generator.normal(0, 1, SIZE)
    soil = (rows + cols) / 10 + generator.normal(0, 1, SIZE)
    pixels = np.stack([rain, heat]).astype(np.float32)
    pixels[:, 60:, :40] = np.nan
    pixels[1, 20:23, 70:81] = np.nan
    write(folder / "country.tif", pixels, nodata=np.nan, names=BANDS)
    write(folder / "soil.tif", soil[None].astype(np.float32), names=("soil",))
    row, col = (generator.integers(0, side, 4 * NUM) for side in SIZE)
    has_data = np.isfinite(pixels[:, row, col]).all(axis=0)
    row, col = row[has_data][:NUM], col[has_data][:NUM]
    richness = pixels[0, row, col] / 5 + pixels[1, row, col] + soil[row, col] + generator.normal(0, 1, NUM)
    columns = {"easting": 500_500 + 1000 * col, "northing": 5_999_500 - 1000 * row, "soil": soil[row, col]}
    write_csv(folder / "plots.csv", columns | {"richness": richness.round(2)})


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-plots-")


@cache
def country() -> Path:
    make_country(Path(_place().name))
    return Path(_place().name)


def training(folder: Path) -> tuple[Path, list[str]]:
    """Source and settings."""
    rasters = f'data.rasters=["{folder / "country.tif"}"]'
    return folder / "plots.csv", [rasters, f"data.crs={UTM}", "data.label_column=richness"]


def run(settings: tuple[str, ...] = OURS) -> Path:
    """Trained and validated, without a report: read it, do not change it."""
    return _run(settings)


@cache
def _run(settings: tuple[str, ...]) -> Path:
    import mirada

    source, reading = training(country())
    out = Path(_place().name) / f"run{len(list(country().glob('run*')))}"
    with quick_stages():
        return mirada.train(source, settings=[*reading, *settings], out=out).path


@contextmanager
def quick_stages() -> Iterator[None]:
    """No report, and a validation beside models that say the mean: the real ones have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirada.verbs.stages.build_report", lambda path: path)
        for name in BASELINES:
            patch.setitem(BASELINES, name, _fit_mean)
        yield


def _fit_mean(layers_NLHW: np.ndarray, targets_N: np.ndarray, **_: object) -> Predict:
    return lambda layers: np.full(len(layers), targets_N.mean())
