"""A trained run to use, and one to spoil."""

import shutil
from pathlib import Path

import pytest

from tests.verbs import trained_run


@pytest.fixture
def photos() -> Path:
    return trained_run.photos()


@pytest.fixture
def run() -> Path:
    """Shared: read it, do not change it."""
    return trained_run.run()


@pytest.fixture
def own_run(tmp_path: Path) -> Path:
    """A copy that a test may write into."""
    return Path(shutil.copytree(trained_run.run(), tmp_path / "own_run"))
