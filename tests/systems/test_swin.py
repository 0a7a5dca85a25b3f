"""Swin: the paper's parameter counts, equality with transformers at any size, windows by hand, merging by hand."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForImageClassification, SwinConfig, SwinForImageClassification, SwinModel

from mirada.core import Attention, BiasTable, Concatenated, Windows, record
from mirada.errors import MiradaError
from mirada.explain.image import explain_images
from mirada.explain.trace import looks_of
from mirada.nn.merging import PatchMerging
from mirada.nn.windowed import WindowedAttention, masked, published
from mirada.systems import card, create
from mirada.systems.registry import all_arguments
from mirada.weights import layout_for, read_checkpoint
from tests.systems.common_checks import CHECKS, images, maker
from tests.weights.references import assert_same, saved, shaken

PUBLISHED = {"T": 28_288_354, "S": 49_606_258, "B": 87_768_224, "L": 196_532_476}


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_the_paper(size, count):
    with torch.device("meta"):
        model = create("swin", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


SHAPE = {"embed_dim": 12, "depths": [2, 3], "num_heads": [2, 3], "window_size": 3, "patch_size": 2, "mlp_ratio": 1.5}


def reference(image_size=24) -> SwinForImageClassification:
    return shaken(SwinForImageClassification(SwinConfig(**SHAPE, image_size=image_size, num_channels=5, num_labels=7)))


# Tokens of the two stages: windows fill them; they do not; merging meets odd sides; a side is one window.
SEEN = {
    "native": (24, 24),
    "another size": (36, 36),
    "other sides": (24, 48),
    "windows over the edge": (28, 32),
    "odd grids": (26, 37),
    "one side is a window": (12, 30),
}


@pytest.mark.parametrize("size", SEEN.values(), ids=SEEN)
def test_equals_transformers_through_the_loader(size, tmp_path):
    theirs = reference()
    checkpoint = saved(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("swin", "transformers")
    assert checkpoint.arguments["image_size"] == (24, 24) and checkpoint.arguments["depths"] == (2, 3)
    assert_same(checkpoint.model(), theirs, torch.randn(2, 5, *size))


def test_names_of_the_running_transformers_are_read_too(tmp_path):
    theirs = reference((24, 36))
    theirs.config.save_pretrained(tmp_path)
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    assert "swin.encoder.layers.0.blocks.0.attention.q_proj.weight" in theirs.state_dict()  # renamed once more?
    assert_same(read_checkpoint(tmp_path).model(), theirs, torch.randn(2, 5, 24, 36))


def test_model_without_head_and_config_lacks_the_head_only(tmp_path):
    SwinModel(reference().config).save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.arguments["image_size"] == (12, 12)  # whose last grid is one window
    needed = set(checkpoint.outline().state_dict())
    assert needed - set(checkpoint.state) == {"head.weight", "head.bias"} and set(checkpoint.state) <= needed


def stored_arguments(**changed):
    tiny = {"dim": 12, "depths": (2, 3), "num_heads": (2, 3), "window_size": 3, "patch_size": 2, "mlp_ratio": 1.5}
    given = {"image_size": (24, 36), "in_channels": 5, "num_classes": 7, **tiny, **changed}
    return all_arguments("swin", **given)


@pytest.mark.parametrize(
    "changed",
    [{}, {"image_size": (26, 37), "fitting": "published"}, {"image_size": (12, 12)}, {"patch_size": None}],
    ids=str,
)
def test_what_we_save_transformers_loads(changed, tmp_path):
    arguments = stored_arguments(**changed)
    ours, layout = shaken(create("swin", **arguments)), layout_for("swin", "transformers")
    theirs_state = layout.to_theirs(ours.state_dict(), arguments)
    back = layout.to_ours(theirs_state, arguments)
    assert all(torch.equal(back[name], tensor) for name, tensor in ours.state_dict().items())
    config = {**layout.config(arguments), "id2label": {str(i): f"c{i}" for i in range(7)}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.contiguous() for name, tensor in theirs_state.items()}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    theirs, info = AutoModelForImageClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert_same(ours, theirs.eval(), torch.randn(2, 5, *arguments["image_size"]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"image_size": (26, 37)}, "windows of 3 do not fill the 13 × 19 tokens of stage 1"),
        ({"image_size": (12, 30)}, "windows of 3 do not fill the 3 × 8 tokens of stage 2"),
        ({"image_size": (8, 24), "fitting": "published"}, "stage 2 has 2 × 6 tokens, fewer than a window of 3"),
    ],
)
def test_what_transformers_would_compute_otherwise_is_not_saved_for_it(changed, message):
    with pytest.raises(MiradaError, match=message):
        layout_for("swin", "transformers").config(stored_arguments(**changed))


@pytest.mark.parametrize("changed", [{"hidden_act": "relu"}, {"qkv_bias": False}, {"layer_norm_eps": 1e-6}], ids=str)
def test_checkpoint_of_another_variant_is_refused(changed, tmp_path):
    SwinForImageClassification(SwinConfig(**SHAPE, image_size=24, **changed)).save_pretrained(tmp_path)
    with pytest.raises(MiradaError, match=f"the checkpoint has {next(iter(changed))}"):
        read_checkpoint(tmp_path)


def test_the_published_code_merges_at_the_end_of_a_stage(tmp_path):
    ours = shaken(create("swin", **stored_arguments()))
    arguments = stored_arguments()
    layouts = [layout_for("swin", origin) for origin in ("timm", "microsoft")]
    timm, microsoft = (layout.to_theirs(ours.state_dict(), arguments) for layout in layouts)
    assert {"layers.1.downsample.norm.weight", "head.fc.bias"} <= set(timm)
    assert {"layers.0.downsample.norm.weight", "head.bias"} <= set(microsoft)
    x = torch.randn(2, 5, 24, 36)
    for origin, tensors in (("timm", timm), ("microsoft", microsoft)):
        save_file({name: t.contiguous() for name, t in tensors.items()}, tmp_path / f"{origin}.safetensors")
        checkpoint = read_checkpoint(tmp_path / f"{origin}.safetensors")
        assert checkpoint.origin == origin
        torch.testing.assert_close(checkpoint.model()(x), ours(x))


def test_windows_over_the_edge_by_hand():
    """Token by token on 5 × 7: who shares a window, the bias of each offset, the sums written out."""
    torch.manual_seed(5)
    rows, columns, side, shift, heads = 5, 7, 3, 1, 2
    attention = Attention(Concatenated(6, heads), position=BiasTable((side, side), heads)).double()
    table = torch.nn.init.normal_(attention.attend.position.table)
    layer = WindowedAttention(attention, Windows((side, side), (shift, shift)))
    x = torch.randn(2, rows * columns, 6, dtype=torch.float64)
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    window = [((row - shift) // side, (column - shift) // side) for row, column in cells]
    q, k, v = attention.heads.project(x)
    expected = torch.zeros_like(q)
    for h in range(heads):
        for i, (row, column) in enumerate(cells):
            seen = [j for j in range(len(cells)) if window[j] == window[i]]
            index = [(row - cells[j][0] + 2) * 5 + column - cells[j][1] + 2 for j in seen]
            logits = (q[:, h, i, None] * k[:, h, seen]).sum(-1) / 3**0.5 + table[index, h]
            expected[:, h, i] = (logits.softmax(-1)[..., None] * v[:, h, seen]).sum(1)
    torch.testing.assert_close(layer(x, grid=(rows, columns)), attention.heads.join(expected))


def test_windows_on_small_grids():
    shifted = Windows((7, 7), (3, 3))
    assert masked(shifted, (14, 10)) == (shifted, (14, 10))
    assert masked(shifted, (7, 14)) == (Windows((7, 7), (0, 3)), (7, 14))
    assert masked(shifted, (3, 10)) == (Windows((3, 7), (0, 3)), (3, 10))
    assert published(shifted, (14, 10)) == (shifted, (14, 14))
    assert published(shifted, (7, 14)) == (Windows((7, 7)), (7, 14))
    assert published(shifted, (3, 10)) == (Windows((3, 3)), (3, 12))


def test_both_fittings_are_the_same_where_windows_fill_the_grid():
    models = [maker(card("swin"), fitting=fitting)().eval() for fitting in ("masked", "published")]
    x = images((12, 24))
    torch.testing.assert_close(models[0](x), models[1](x))
    odd = images((26, 22))
    assert not torch.allclose(models[0](odd), models[1](odd), atol=1e-4)


def test_common_checks_hold_for_the_published_fitting():
    for check in set(CHECKS) - {"overfits_eight_samples", "recording", "accepts_any_class_count"}:
        CHECKS[check](maker(card("swin"), fitting="published"))


def test_second_layer_of_a_stage_looks_across_the_windows_of_the_first():
    model = maker(card("swin"))().eval()
    with record(model) as maps:
        model(images((12, 12)))
    first, second = maps[0][0, 0], maps[1][0, 0]  # 6 × 6 tokens, windows of 3
    assert {int(n) for n in (first > 0).sum(-1)} == {9}
    assert {int(n) for n in (second > 0).sum(-1)} == {1, 2, 3, 4, 6, 9}
    assert not first[2 * 6 + 2, 3 * 6 + 3] and second[2 * 6 + 2, 3 * 6 + 3]


@pytest.mark.parametrize("name", ["swin", "mvit"])
@pytest.mark.parametrize(
    ("size", "patch"), [((16, 16), 1), ((28, 28), 2), ((32, 32), 2), ((64, 48), 4), ((224, 224), 16)]
)
def test_small_sizes_derive_their_patches(name, size, patch):
    with torch.device("meta"):
        assert create(name, "nano", image_size=size, in_channels=1, num_classes=2).patch_size == patch


def test_weights_start_as_published_unless_the_model_is_narrower():
    published = create("swin", "T", image_size=(32, 32), in_channels=3, num_classes=10, depths=(1, 1), num_heads=(3, 6))
    narrow = create("swin", "nano", image_size=(32, 32), in_channels=3, num_classes=10)
    first, narrow_first = (model.stages[0].layers[0].mlp.inner.expand for model in (published, narrow))
    assert abs(first.weight.std() - 0.02) < 0.002 and not first.bias.any()
    assert abs(narrow_first.weight.std() - (2 / (32 + 64)) ** 0.5) < 0.01


def test_merging_takes_two_by_two_column_by_column_and_pads_odd_sides():
    merging = PatchMerging(1, 4)
    with torch.no_grad():
        merging.reduction.weight.copy_(torch.eye(4))
    merging.norm = torch.nn.Identity()
    x = torch.arange(1.0, 16.0).view(1, 15, 1)
    merged, grid = merging(x, (3, 5))
    assert grid == (2, 3)
    expected = [[1, 6, 2, 7], [3, 8, 4, 9], [5, 10, 0, 0], [11, 0, 12, 0], [13, 0, 14, 0], [15, 0, 0, 0]]
    assert merged[0].tolist() == expected


def test_stages_must_be_named_alike():
    with pytest.raises(MiradaError, match=r"depths=\(2, 2\), num_heads=\(2,\): must name the same stages"):
        create("swin", image_size=8, in_channels=1, num_classes=2, depths=(2, 2), num_heads=(2,))
    with pytest.raises(MiradaError, match=r"fitting='mask' \(did you mean 'masked'\?\): must be one of"):
        create("swin", image_size=8, in_channels=1, num_classes=2, fitting="mask")


def test_padding_of_published_windows_is_left_out_of_explanations():
    """8 × 8 patches in windows of 7: the published code pads them to 14 × 14, and the next stage's 4 × 4 stay."""
    torch.manual_seed(0)
    sizes = {"dim": 12, "depths": (1, 1), "num_heads": (2, 2), "patch_size": 4, "window_size": 7}
    model = create("swin", image_size=32, in_channels=3, num_classes=3, fitting="published", **sizes).eval()
    looks = looks_of(model, torch.randn(2, 3, 32, 32))
    assert [look.queries.size for look in looks] == [(8, 8), (4, 4)]
    assert looks[0].weights_BHNM.shape == (2, 2, 64, 64)
    found = explain_images(model, torch.randn(2, 3, 32, 32), method="rollout")
    assert found.relevance_BRC.shape == (2, 8, 8) and found.cells.height == 4
    torch.testing.assert_close(found.relevance_BRC.sum((1, 2)), torch.ones(2))
