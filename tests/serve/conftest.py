"""A client of a server in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from mirada.serve.app import create_app
from mirada.serve.limits import Limits
from tests.serve.untrained import image_run


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Path:
    """Shared: read it, do not change it."""
    return image_run(tmp_path_factory.mktemp("serve") / "vit-photos")


@pytest.fixture
def served() -> Iterator[Callable[..., TestClient]]:
    """served(run, token=…, images=3): a client of its server, with these limits."""
    with ExitStack() as stack:

        def client(run: Path, *, token: str | None = None, hosts: list[str] | None = None, **limits) -> TestClient:
            app = create_app(run, Limits(**limits), token, hosts=hosts, device="cpu")
            return stack.enter_context(TestClient(app, base_url="http://localhost:8000", follow_redirects=False))

        yield client
