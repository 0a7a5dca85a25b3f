"""Presets are valid, build their model, and are chosen from the data."""

from __future__ import annotations

import pytest

from mirada import systems
from mirada.config.load import merge, parse_settings, presets, read_preset, resolve
from mirada.config.preset_choice import choose_preset
from mirada.errors import MiradaError
from mirada.systems.registry import taken


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_valid_and_its_model_can_be_built(name):
    config = resolve(read_preset(name))
    assert config.preset == name and (config.train.minutes or config.train.epochs or config.train.steps)
    side = 8 if name == "tiny-images" else 32
    shapes: dict[str, dict] = {
        "image": {"image_size": (side, side), "in_channels": 3, "num_classes": 5},
        "pixels": {"image_size": (side, side), "in_channels": 3},
        "masks": {"image_size": (side, side), "in_channels": 3, "num_classes": 5},
        "graph": {"in_channels": 3, "num_classes": 5},
        "text": {"num_tokens": config.text.num_tokens},
        "pairs": {"num_tokens": config.text.num_tokens},
    }
    name, size = config.system.name, config.system.size
    shapes["plots"] = taken(name, in_channels=6, num_covariates=2, num_plots=11)
    model = systems.create(name, size, **config.system.arguments, **shapes[systems.card(name).inputs])
    assert sum(p.numel() for p in model.parameters()) < 10_000_000


@pytest.mark.parametrize(
    ("num_train", "size", "expected"),
    [
        (1257, (8, 8), "tiny-images"),
        (700, (32, 32), "small-data"),
        (19_000, (32, 32), "medium-data"),
        (2000, (64, 48), "small-data"),
        (2000, (128, 96), "large-images"),
    ],
)
def test_the_preset_follows_from_number_and_size(num_train, size, expected):
    name, why = choose_preset(num_train, size)
    assert name == expected and name in presets() and why


def test_later_layers_win_and_a_length_replaces_any_other():
    merged = merge({"train": {"minutes": 5, "seed": 1}}, {"train": {"epochs": 3}})
    assert merged == {"train": {"seed": 1, "epochs": 3}}
    config = resolve(read_preset("small-data"), parse_settings(["train.steps=7", "system.size=nano"]))
    assert (config.train.steps, config.train.minutes, config.system.size) == (7, None, "nano")


def test_another_system_or_size_drops_the_arguments_of_the_earlier_one():
    preset = read_preset("small-data")
    other = resolve(preset, {"system": {"name": "cnn"}}).system
    assert (other.name, other.size, other.arguments) == ("cnn", None, {})
    larger = resolve(preset, {"system": {"name": "vit", "size": "mini", "arguments": {"dropout": 0.1}}}).system
    assert (larger.size, larger.arguments) == ("mini", {"dropout": 0.1})
    same = resolve(preset, {"system": {"arguments": {"dropout": 0.1}}}).system
    assert same.arguments == {**preset["system"]["arguments"], "dropout": 0.1}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.epoch=3", "did you mean 'epochs'"),
        ("trian.epochs=3", "did you mean 'train'"),
        ("train.epochs=-1", "'train.epochs' is -1"),
        ("train.epochs=many", "'train.epochs' is 'many'"),
        ("train=3", "'train' is 3"),
        ("epochs", "key.sub=value"),
    ],
)
def test_a_wrong_setting_is_one_sentence(setting, message):
    with pytest.raises(MiradaError) as error:
        resolve(parse_settings([setting]))
    assert message in str(error.value) and "\n" not in str(error.value)
