"""Models in memory."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from mirada.errors import MiradaError
from mirada.serve import models
from mirada.serve.models import Models
from tests.serve.untrained import image_run


@pytest.fixture
def runs(tmp_path):
    return [image_run(tmp_path / name) for name in ("a", "b", "c")]


def test_a_model_is_loaded_once_and_the_oldest_goes_first(runs, monkeypatch):
    loaded, plain = [], models.load
    monkeypatch.setattr(models, "load", lambda folder, **how: loaded.append(folder.path.name) or plain(folder, **how))
    kept = Models(2)
    first = kept.get(runs[0])
    assert not first.model.training and kept.get(str(runs[0])) is first
    kept.get(runs[1])
    kept.get(runs[0])
    kept.get(runs[2])  # b was used least recently
    assert kept.get(runs[0]) is first and len(kept) == 2
    kept.get(runs[1])
    assert loaded == ["a", "b", "c", "b"]


def test_many_threads_load_it_once(runs, monkeypatch):
    loaded, plain = [], models.load
    monkeypatch.setattr(models, "load", lambda folder, **how: loaded.append(folder) or plain(folder, **how))
    kept = Models(1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: kept.get(runs[0]), range(16)))
    assert len(loaded) == 1 and all(one is found[0] for one in found)


def test_a_better_model_is_loaded_again(runs):
    kept = Models(1)
    first = kept.get(runs[0])
    weights = runs[0] / "best" / "model.safetensors"
    later = weights.stat().st_mtime_ns + 1_000_000
    os.utime(weights, ns=(later, later))
    assert kept.get(runs[0]) is not first


def test_what_is_no_run_is_refused(tmp_path):
    kept = Models(1)
    for path, said in ((tmp_path / "missing", "no such folder"), (tmp_path, "is not the folder of a run")):
        with pytest.raises(MiradaError, match=said):
            kept.get(path)
    with pytest.raises(MiradaError, match="at least 1"):
        Models(0)
