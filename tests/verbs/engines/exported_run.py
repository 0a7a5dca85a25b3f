"""The baseline of the trained run with its files for other engines: made once, used by many tests."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mirada
from tests.verbs import trained_run


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-tests-")


@cache
def run() -> Path:
    """A copy, as its engines are kept in it; a small network of convolutions, which is exported in a second."""
    return Path(shutil.copytree(trained_run.run(), Path(_place().name) / "run")) / "baseline"


@cache
def folder() -> Path:
    mirada.export(run(), to="onnx", out=Path(_place().name) / "exported")
    return Path(_place().name) / "exported"
