"""MViTv2 against timm's: the same weights, read by our loader, and the way back."""

import pytest
import torch
from benchmarks.peers import import_timm
from safetensors.torch import save_file
from tests.weights.references import assert_same, shaken
from torch.nn import functional as F

from mirada.systems import create
from mirada.weights import layout_for, load_adapted, read_checkpoint

pytestmark = pytest.mark.peers


def reference(side, **changed):
    import_timm()
    from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg

    shape = {"depths": (1, 2, 2), "embed_dim": 12, "num_heads": 2, "mlp_ratio": 1.5, **changed}
    strides = {"stride_q": ((1, 1), (2, 2), (2, 2))}
    return shaken(MultiScaleVit(MultiScaleVitCfg(**shape, **strides), img_size=(side, side), in_chans=5, num_classes=7))


def stored(theirs, folder):
    file = folder / "model.safetensors"
    save_file(theirs.state_dict(), file)
    return read_checkpoint(file)


@pytest.mark.parametrize("widening", ["attention", "mlp"])
@pytest.mark.parametrize("side", [32, 64])
def test_equals_timm_in_output_and_input_gradient(side, widening, tmp_path):
    theirs = reference(side, expand_attn=widening == "attention")
    checkpoint = stored(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("mvit", "timm")
    assert checkpoint.arguments["image_size"] == (side, side) and checkpoint.arguments["widening"] == widening
    assert_same(checkpoint.model(), theirs, torch.randn(2, 5, side, side))


def at_side(theirs, side):
    """The model of another image size, with its tables interpolated as timm does when it loads weights."""
    from timm.models.mvitv2 import checkpoint_filter_fn

    larger = reference(side)
    larger.load_state_dict(checkpoint_filter_fn(dict(theirs.state_dict()), larger))
    return larger.eval()


def test_equals_timm_at_another_size(tmp_path):
    theirs = reference(32)
    checkpoint = stored(theirs, tmp_path)
    x = torch.randn(2, 5, 64, 64)
    assert_same(checkpoint.model(), at_side(theirs, 64), x)
    arguments = {**checkpoint.all_arguments, "image_size": (64, 64)}
    adapted = create("mvit", **arguments).eval()
    rows = load_adapted(adapted, arguments, checkpoint)
    assert {row.done for row in rows} == {"linear interpolation"} and len(rows) == 2 * 5
    assert_same(adapted, at_side(theirs, 64), x)


def with_tables_for(theirs, grid):
    """timm makes tables for squares only; given tables of the right length its attention takes any grid."""
    for stage in theirs.stages:
        for block in stage.blocks:
            strides = [block.attn.pool_q.stride, block.attn.pool_k.stride]
            queries, keys = ([-(-n // s) for n, s in zip(grid, stride, strict=True)] for stride in strides)
            for name, n_q, n_k in zip(("rel_pos_h", "rel_pos_w"), queries, keys, strict=True):
                table = getattr(block.attn, name).T[None]
                resized = F.interpolate(table, size=2 * max(n_q, n_k) - 1, mode="linear")[0].T
                setattr(block.attn, name, torch.nn.Parameter(resized))
            grid = queries
    return theirs


@pytest.mark.parametrize("size", [(32, 48), (36, 44), (29, 70)])
def test_equals_timm_on_images_that_are_not_square(size, tmp_path):
    theirs = reference(32)
    ours = stored(theirs, tmp_path).model()
    grid = -(-size[0] // 4), -(-size[1] // 4)
    assert_same(ours, with_tables_for(theirs, grid), torch.randn(2, 5, *size))


@pytest.mark.parametrize("size", ["T", "S", "B", "L"])
def test_named_sizes_have_the_names_and_shapes_of_timm(size):
    timm = import_timm()
    name = {"T": "tiny", "S": "small", "B": "base", "L": "large"}[size]
    with torch.device("meta"):
        theirs = timm.create_model(f"mvitv2_{name}").state_dict()
        ours = create("mvit", size, image_size=(224, 224), in_channels=3, num_classes=1000).state_dict()
    found = layout_for("mvit", "timm").to_theirs(ours, {})
    assert {key: tensor.shape for key, tensor in found.items()} == {key: t.shape for key, t in theirs.items()}
