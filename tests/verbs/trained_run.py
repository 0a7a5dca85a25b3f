"""Sixty small images of three classes, and a model trained on them for a moment: made once, used by many tests."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

CLASSES = ("bright", "dark", "grey")
TINY = (
    "system.arguments.dim=8",
    "system.arguments.depth=1",
    "system.arguments.num_heads=2",
    "system.arguments.stem=linear",
    "train.batch_size=16",
    "train.evaluations=2",
)


def make_photos(folder: Path, classes: tuple[str, ...] = CLASSES, per_class: int = 20, seed: int = 0) -> Path:
    """folder/<class>/<number>.png, 8 × 8 in colour; the brightness tells the class."""
    generator = np.random.default_rng(seed)
    means = {"dark": 40, "grey": 120, "bright": 200}
    for name in classes:
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            pixels = generator.normal(means.get(name, 90), 25, (8, 8, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-tests-")


@cache
def photos() -> Path:
    return make_photos(Path(_place().name) / "photos")


@cache
def run() -> Path:
    """Trained with a baseline and a report."""
    import mirada

    settings = [*TINY, "train.steps=10", "baseline.size=nano"]
    return mirada.train(photos(), settings=settings, out=Path(_place().name) / "run").path
