"""A folder of really trained runs, and a studio of it."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from mirada.studio.app import create_app
from tests import shapes
from tests.verbs import trained_run
from tests.verbs.text import texts

KINDS = ("pairs", "book", "lines", "labels")


@pytest.fixture(scope="session")
def shared_runs(tmp_path_factory) -> Path:
    """runs/photos, shapes, pairs, book, lines and labels. Shared: read them, do not change them."""
    folder = tmp_path_factory.mktemp("studio") / "runs"
    shutil.copytree(trained_run.run(), folder / "photos")
    shutil.copytree(shapes.run(), folder / "shapes")
    for kind in KINDS:
        shutil.copytree(texts.run(kind), folder / kind)
    return folder


@pytest.fixture(scope="session")
def shared(shared_runs) -> TestClient:
    """The studio of them, with models in memory."""
    return TestClient(create_app(shared_runs), raise_server_exceptions=False)


@pytest.fixture
def own_runs(tmp_path) -> Path:
    """runs/photos, to be changed."""
    shutil.copytree(trained_run.run(), tmp_path / "runs" / "photos")
    return tmp_path / "runs"


@pytest.fixture
def studio(own_runs) -> TestClient:
    return TestClient(create_app(own_runs), raise_server_exceptions=False)
