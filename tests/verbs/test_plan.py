"""Which rate and optimiser a run gets: the caller's, else those of the preset's own system, else those of the card."""

from __future__ import annotations

import pytest

from mirada import systems
from mirada.config.load import read_preset
from mirada.verbs.stages import Watcher
from mirada.verbs.train import plan, what_was_said

PRESET = read_preset("tiny-images")["train"]["learning_rate"]


@pytest.mark.parametrize(
    ("system", "settings", "rate"),
    [
        (None, [], PRESET),
        ("vit", [], PRESET),
        ("vit:nano", [], PRESET),
        ("vit:micro", [], systems.card("vit").learning_rate),
        ("cnn", [], systems.card("cnn").learning_rate),
        ("cnn", ["train.learning_rate=0.125"], 0.125),
    ],
)
def test_rate(system: str | None, settings: list[str], rate: float) -> None:
    config, _ = plan(what_was_said("digits", system, None, settings), None, Watcher())
    assert config.train.learning_rate == rate


@pytest.mark.parametrize(
    ("preset", "system", "settings", "optimiser"),
    [
        ("medium-data", None, [], "muon"),
        ("medium-data", "vit:micro", [], "muon"),
        ("medium-data", "vit:nano", [], "adamw"),
        ("medium-data", "resnet", [], "adamw"),
        ("medium-data", "cnn", [], systems.card("cnn").optimiser),
        ("medium-data", "resnet", ["train.optimiser=muon"], "muon"),
        ("tiny-images", "cnn", [], "adamw"),
    ],
)
def test_optimiser(preset: str, system: str | None, settings: list[str], optimiser: str) -> None:
    config, _ = plan(what_was_said("digits", system, None, settings), preset, Watcher())
    assert config.train.optimiser == optimiser
