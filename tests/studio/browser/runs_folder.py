"""A folder of really trained small runs for the pages of the studio, made once."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mirada
from tests.verbs.maps import plots_run
from tests.verbs.text import texts

OF_PHOTOS = (
    *("system.name=vit", "system.arguments.dim=32", "system.arguments.depth=3", "system.arguments.num_heads=4"),
    *("system.arguments.patch_size=4", "system.arguments.stem=linear", "system.arguments.pooling=class"),
    *("train.steps=90", "train.evaluations=6", "train.learning_rate=3e-3", "baseline.size=nano"),
)
OF_TEXTS = {
    "transformer-numbers": ("pairs", ("train.steps=220", "train.learning_rate=1e-2", "system.arguments.dim=32")),
    "gpt-book": ("book", ("train.steps=60", "train.learning_rate=1e-2")),
    "bert-lines": ("lines", ("train.steps=60", "train.learning_rate=1e-2")),
    "bert-labels": ("labels", ("train.steps=60", "train.learning_rate=1e-2")),
}


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-studio-")


@cache
def runs_folder() -> Path:
    """Two models of photos, one of each kind of text, and one of plots with its map. Tests may add runs."""
    folder = Path(_place().name) / "runs"
    mirada.train("photos", settings=OF_PHOTOS, out=folder / "vit-photos")
    other = (*OF_PHOTOS, "system.arguments.pooling=mean", "baseline.name=none", "train.seed=1")
    mirada.train("photos", settings=other, out=folder / "vit-photos-mean")
    for name, (kind, own) in OF_TEXTS.items():
        settings = [*texts.SETTINGS[kind], *own]
        mirada.train(texts.sources()[kind], system=texts.SYSTEMS[kind], settings=settings, out=folder / name)
    places = shutil.copytree(plots_run.run(), folder / "spatioformer-plots")
    rasters = [plots_run.country() / "country.tif", plots_run.country() / "soil.tif"]
    mirada.map(places, rasters, places / "maps" / "richness.tif", workers=1)
    return folder
