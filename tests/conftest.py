"""What all tests share: one seed, one thread per worker, and the way to the real data sets."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MIRADA_TEST_DATA", ROOT.parent / "shared" / "data"))

# tests/peers imports timm and others, which live in .venv-peers (see the Makefile).
collect_ignore = [] if importlib.util.find_spec("timm") else ["peers"]

# A busy machine is not a failure.
hypothesis.settings.register_profile("mirada", deadline=None)
hypothesis.settings.load_profile("mirada")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seed_and_threads() -> Iterator[None]:
    """Sums of more threads have other bits, and a benchmark that is tried out sets as many as there are cores."""
    torch.manual_seed(0)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """`real_data("graph/cora")` is the path of that data set; where it is missing the test is skipped."""

    def path_of(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"real data set {name} is not in {DATA}; set MIRADA_TEST_DATA to the folder that has it")
        return DATA / name

    return path_of
