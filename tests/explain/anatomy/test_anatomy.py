"""Whole models taken apart: every registered attention system of images and texts."""

import json
import math

import numpy as np
import pytest
import torch

from mirada import systems
from mirada.errors import MiradaError
from mirada.explain.anatomy import anatomy, features_of, linear_cka, runs
from mirada.explain.anatomy.runs import Asked
from mirada.explain.trace import looks_of
from mirada.systems import create
from mirada.systems.registry import taken

SIZE = (20, 28)
IMAGE_SYSTEMS = [name for name, card in systems.cards().items() if card.inputs == "image" and card.parts]
TEXT_SYSTEMS = [name for name, card in systems.cards().items() if card.inputs == "text" and card.parts]
PAIR_SYSTEMS = [name for name, card in systems.cards().items() if card.inputs == "pairs"]


def tiny(name: str, **changes):
    offered = {"image_size": SIZE, "in_channels": 3, "num_classes": 3, "num_tokens": 11}
    if systems.card(name).inputs in ("text", "pairs"):
        offered.pop("num_classes")
    arguments = {**taken(name, **offered), **systems.card(name).tiny, **changes}
    return create(name, **arguments).eval()


def images(count: int = 5) -> torch.Tensor:
    return torch.randn(count, 3, *SIZE)


def sentences(*lengths: int) -> list[torch.Tensor]:
    return [torch.randint(1, 11, (length,)) for length in lengths]


@pytest.mark.parametrize("name", IMAGE_SYSTEMS)
def test_every_attention_system_of_images(name):
    found = anatomy(tiny(name), images())
    assert found.unit == "px" and found.num_inputs == 5
    for layer in found.heads:
        if "entropy" not in layer.missing:
            assert (layer.entropy_H >= 0).all() and (layer.entropy_H <= math.log(len(layer.keys)) + 1e-5).all()
            assert (layer.entropy_H <= layer.uniform_entropy + 1e-5).all()
        if "distance" not in layer.missing:
            assert (layer.distance_H >= 0).all() and (layer.distance_H <= layer.farthest).all()
            assert layer.farthest <= math.hypot(32, 32)  # the image, padded
        for name_of_share, share_H in layer.to_H.items():
            assert (0 <= share_H).all() and (share_H <= 1).all()
            assert 0 < layer.uniform_to[name_of_share] <= 1
    num_heads = sum(layer.num_heads for layer in found.heads)
    assert found.divergence_TT.shape == (num_heads, num_heads)
    assert found.similarity_LL.diagonal() == pytest.approx(1)
    assert found.alignment is not None
    assert found.alignment.cka_FF.diagonal() == pytest.approx(1)
    assert (found.filters is None) == ("filters" in found.missing)
    assert (found.positions is None) == ("positions" in found.missing)
    assert all(reason.endswith(".") for reason in found.missing.values())
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", TEXT_SYSTEMS)
def test_every_attention_system_of_texts(name):
    found = anatomy(tiny(name), sentences(5, 7, 11, 13, 2))
    assert found.unit == "tokens"
    for layer in found.heads:
        assert not layer.missing
        assert {"first", "self", "previous"} <= set(layer.to_H)
        assert ("next" in layer.to_H) == (name == "bert")  # in a causal model nobody sees what follows
        assert (layer.distance_H <= 12).all() and layer.farthest == 12
    assert "no pixels" in found.missing["filters"]
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", PAIR_SYSTEMS)
def test_every_attention_system_of_pairs(name):
    pairs = list(zip(sentences(5, 7, 11, 3), sentences(7, 5, 2, 13), strict=True))
    found = anatomy(tiny(name), pairs)
    across = [layer for layer in found.heads if layer.kind == "cross"]
    assert across and all(np.isnan(layer.distance_H).all() and "distance" in layer.missing for layer in across)
    uniform = np.mean([math.log(length) for length in (5, 7, 11, 3)])
    assert [layer.uniform_entropy for layer in across] == pytest.approx([uniform] * len(across))


def test_numbers_of_one_head_are_those_of_its_map():
    """Mean over images and patches of Σ_j α_ij d_ij, from the recorded weights, by hand."""
    model, x = tiny("vit", pooling="class", stem="linear"), images(3)
    found = anatomy(model, x)
    look = looks_of(model, x)[1]
    weights = look.weights_BHNM[:, 1, 1:, 1:]
    weights = weights / weights.sum(-1, keepdim=True)
    cells = torch.cartesian_prod(torch.arange(5.0), torch.arange(7.0)) * 4
    expected = (weights * torch.cdist(cells, cells)).sum(-1).mean()
    assert found.heads[1].distance_H[1] == pytest.approx(float(expected), rel=1e-5)
    whole = look.weights_BHNM[:, 1]
    assert found.heads[1].entropy_H[1] == pytest.approx(float(-(whole * whole.log()).sum(-1).mean()), rel=1e-5)
    assert found.heads[1].to_H["extra"][1] == pytest.approx(float(whole[:, 1:, 0].mean()), rel=1e-5)
    assert found.heads[1].uniform_entropy == pytest.approx(math.log(36))


def test_numbers_do_not_depend_on_how_many_run_at_once(monkeypatch):
    model, x = tiny("vit", pooling="class"), images(7)
    together = anatomy(model, x)
    monkeypatch.setattr(runs, "MAX_WEIGHTS", 1)
    one_by_one = anatomy(model, x)
    for one, other in zip(together.heads, one_by_one.heads, strict=True):
        np.testing.assert_allclose(one.distance_H, other.distance_H, rtol=1e-5)
        np.testing.assert_allclose(one.entropy_H, other.entropy_H, rtol=1e-5)
    np.testing.assert_allclose(together.divergence_TT, one_by_one.divergence_TT, atol=1e-6)
    np.testing.assert_allclose(together.similarity_LL, one_by_one.similarity_LL, atol=1e-6)


def test_padding_of_texts_is_not_looked_at():
    model, texts = tiny("bert"), sentences(5, 3, 7, 4)
    padded = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=model.pad)
    one, other = anatomy(model, texts), anatomy(model, padded)
    for layer, again in zip(one.heads, other.heads, strict=True):
        np.testing.assert_array_equal(layer.entropy_H, again.entropy_H)


def test_uniform_line_of_windows_is_that_of_a_window():
    layer = anatomy(tiny("swin"), images()).heads[0]
    # 10 × 14 tokens in windows of 3 × 3: 3, 3, 3, 1 rows and 3, 3, 3, 3, 2 columns.
    sizes = [rows * columns for rows in (3, 3, 3, 1) for columns in (3, 3, 3, 3, 2)]
    assert layer.uniform_entropy == pytest.approx(sum(n * math.log(n) for n in sizes) / sum(sizes))


def test_re_attention_has_similarity_but_no_shares():
    found = anatomy(tiny("deepvit"), images())
    assert "rows that do not sum to one" in found.missing["entropy"]
    assert np.isnan(found.divergence_TT).all()
    assert np.isfinite(found.similarity_LL).all()


def test_two_models_are_compared_on_the_same_inputs():
    model, other, x = tiny("vit"), tiny("cnn"), images(11)
    found = anatomy(model, x, against=(other, x))
    own, theirs = (list(features_of(each, [(x,)]).values()) for each in (model, other))
    assert found.against is not None and found.against.cka_FF.shape == (len(own), len(theirs))
    assert found.against.cka_FF[1, 0] == pytest.approx(linear_cka(own[1], theirs[0]))
    itself = anatomy(model, x, against=(model, x)).against
    assert itself is not None
    assert itself.cka_FF.diagonal() == pytest.approx(1)


def test_features_are_means_over_tokens_of_what_layers_give():
    model, x = tiny("vit", pooling="class"), images(3)
    kept = []
    hook = model.encoder.layers[1].register_forward_hook(lambda layer, given, output: kept.append(output.mean(1)))
    with torch.inference_mode():
        model(x)
    hook.remove()
    found = features_of(model, [(x[:2],), (x[2:],)])
    torch.testing.assert_close(found["encoder.layers.1"], kept[0])
    assert not model.encoder.layers[1]._forward_hooks


def test_volumes_have_distances_in_three_directions():
    small = {"dim": 12, "depth": 1, "num_heads": 2, "patch_size": 4, "patch_slices": 2}
    model = create("vit_3d", volume_size=(6, 8, 12), in_channels=1, num_classes=3, **small).eval()
    found = anatomy(model, torch.randn(5, 1, 6, 8, 12))
    assert found.heads[0].keys.size == (3, 2, 3)
    assert found.heads[0].farthest == pytest.approx(math.sqrt(4**2 + 4**2 + 8**2))
    assert found.positions is not None and found.positions.size == (3, 2, 3)
    assert "no flat picture" in found.missing["filters"]


def test_few_inputs_have_no_cka_and_the_reason_is_given():
    found = anatomy(tiny("vit"), images(2))
    assert found.alignment is None
    assert found.missing["alignment"].startswith("2 inputs are too few")


def test_training_mode_is_given_back():
    model = tiny("vit").train()
    anatomy(model, images())
    assert model.training


def test_pixels_of_a_line_lie_on_the_grid():
    model = tiny("image_gpt", num_colours=7, image_size=(3, 5))
    model.give_palette(torch.randn(7, 3))
    found = anatomy(model, torch.randn(5, 3, 3, 5))
    assert found.heads[0].keys.size == (3, 5)
    assert found.heads[0].farthest == pytest.approx(math.hypot(2, 4))


@pytest.mark.parametrize(
    ("model", "inputs", "reason"),
    [
        ("cnn", torch.zeros(2, 3, *SIZE), "CNN has no attention layers"),
        ("vit", torch.zeros(0, 3, *SIZE), r"\(0, 3, 20, 28\)"),
        ("vit", torch.zeros(3, *SIZE), r"give \(B, C, height, width\)"),
        ("bert", [], "no inputs were given"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(model, inputs, reason):
    with pytest.raises(MiradaError, match=reason):
        anatomy(tiny(model), inputs)


def test_inputs_are_counted_and_cut():
    asked = Asked.of(images(7))
    assert (len(asked), len(asked.first(3)), asked.extent, asked.longest) == (7, 3, SIZE, None)
    texts = Asked.of(sentences(3, 5))
    assert (len(texts), texts.extent, texts.longest) == (2, None, 5)
    assert [len(run) for run in texts.runs()] == [1, 1]
