"""Finding and making systems by name, and the sentence that a wrong name gets."""

import pytest

from mirada.errors import MiradaError
from mirada.systems import ViT, card, cards, create
from mirada.systems.registry import one_of, taken

IMAGES = {"image_size": (16, 16), "in_channels": 3, "num_classes": 5}


def test_cards_are_sorted_by_name():
    assert list(cards()) == sorted(cards())
    assert {"cnn", "gat", "resnet", "vit"} <= set(cards())
    assert card("vit") is cards()["vit"]


def test_arguments_replace_those_of_the_size():
    model = create("vit", "nano", **IMAGES, depth=2)
    assert isinstance(model, ViT)
    assert len(model.encoder.layers) == 2
    assert model.head.in_features == card("vit").sizes["nano"]["dim"]


def test_without_a_size_the_default_one_is_made():
    assert create("cnn", **IMAGES).stem[0].out_channels == card("cnn").sizes[card("cnn").default_size]["dim"]


@pytest.mark.parametrize(
    ("name", "size", "arguments", "message"),
    [
        ("resnets", None, IMAGES, r"no system is called 'resnets' \(did you mean 'resnet'\?\): there are .*vit"),
        ("zzz", None, IMAGES, r"no system is called 'zzz': there are"),
        ("vit", "mini/4", IMAGES, r"no size 'mini/4' \(did you mean 'mini'\?\): there are nano"),
        ("vit", "b/16", IMAGES, r"no size 'b/16' \(did you mean 'B/16'\?\)"),
        ("vit", None, {**IMAGES, "num_head": 2}, r"no argument 'num_head' \(did you mean 'num_heads'\?\).*patch_size"),
        ("cnn", None, {"image_size": (16, 16)}, "needs in_channels, num_classes"),
    ],
)
def test_wrong_name_is_refused_with_the_nearest(name, size, arguments, message):
    with pytest.raises(MiradaError, match=message):
        create(name, size, **arguments)


def test_wrong_choice_is_refused_with_the_choices():
    assert one_of("pooling", "mean", {"mean": 1, "class": 2}) == 1
    with pytest.raises(MiradaError, match=r"pooling='maen' \(did you mean 'mean'\?\): must be one of mean, class"):
        one_of("pooling", "maen", {"mean": 1, "class": 2})


def test_of_what_the_data_offers_a_system_takes_what_it_has_an_argument_for():
    offered = {"in_channels": 6, "num_covariates": 2, "num_plots": 11}
    assert taken("spatioformer", **offered) == offered
    assert taken("spatioformer_paper", **offered) == {"in_channels": 6}
    with pytest.raises(MiradaError, match="no system is called 'spatio'"):
        taken("spatio", **offered)
