"""What cannot work is refused before anything is written."""

from types import SimpleNamespace

import pytest

from mirada.config import resolve
from mirada.errors import MiradaError
from mirada.verbs.possible import require_possible

PREPARED = SimpleNamespace(
    inputs="image",
    source="photos",
    arguments=lambda: {"image_size": (13, 11), "in_channels": 3, "num_classes": 5},
    require_suitable=lambda config: None,
)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"system": {"name": "vitt"}}, "'vit'"),
        ({"system": {"name": "vit", "size": "tini"}}, "'tini'"),
        ({"system": {"name": "vit", "arguments": {"dims": 3}}}, "'dims'"),
        ({"system": {"name": "vit", "arguments": {"dim": "wide"}}}, "wide"),
        ({"system": {"name": "vit", "arguments": {"num_heads": 0}}}, "num_heads"),
        ({"system": {"name": "gat"}}, "takes a graph, but photos holds images"),
        ({"baseline": {"name": "cnnn"}}, "'cnn'"),
        ({"baseline": {"arguments": {"width": 3}}}, "'width'"),
        ({"train": {"device": "abacus"}}, "device 'abacus' cannot be used here"),
    ],
)
def test_impossible_configuration_is_refused(settings, words):
    with pytest.raises(MiradaError, match=words):
        require_possible(resolve(settings), PREPARED)


def test_possible_configuration_passes_and_allocates_nothing():
    require_possible(resolve({"system": {"name": "vit", "size": "H/14"}, "baseline": {"name": "none"}}), PREPARED)
    assert require_possible(resolve({}), PREPARED) is None


def test_missing_tracker_is_refused(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MiradaError, match=r'mlflow-skinny, sqlalchemy, alembic: pip install "mirada\[mlflow\]"'):
        require_possible(resolve({"track": {"mlflow": True}}), PREPARED)
