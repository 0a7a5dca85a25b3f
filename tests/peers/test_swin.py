"""Swin against timm's: the same weights, read by our loader, and the way back."""

import pytest
import torch
from benchmarks.peers import import_timm
from safetensors.torch import save_file
from tests.weights.references import assert_same, shaken

from mirada.systems import create
from mirada.weights import layout_for, read_checkpoint

pytestmark = pytest.mark.peers


def reference(image_size, **changed):
    import_timm()
    from timm.models.swin_transformer import SwinTransformer

    shape = {"embed_dim": 12, "depths": (2, 3), "num_heads": (2, 3), "window_size": 3, "mlp_ratio": 1.5, **changed}
    return shaken(
        SwinTransformer(img_size=image_size, patch_size=2, in_chans=5, num_classes=7, **shape, strict_img_size=False)
    )


def stored(theirs, folder):
    file = folder / "model.safetensors"
    save_file(theirs.state_dict(), file)
    return read_checkpoint(file)


# The last stage of 12 × 24 pixels has 3 × 6 tokens: windows of 3 are shifted along the longer side only.
@pytest.mark.parametrize("built_for", [(24, 24), (24, 48), (12, 24), (12, 12)])
def test_equals_timm_in_output_and_input_gradient(built_for, tmp_path):
    theirs = reference(built_for)
    checkpoint = stored(theirs, tmp_path)
    assert (checkpoint.system, checkpoint.origin) == ("swin", "timm")
    assert_same(checkpoint.model(), theirs, torch.randn(2, 5, *built_for))


@pytest.mark.parametrize("seen", [(36, 36), (24, 60)])
def test_equals_timm_at_another_size(seen, tmp_path):
    theirs = reference((24, 24))
    assert_same(stored(theirs, tmp_path).model(), theirs, torch.randn(2, 5, *seen))


@pytest.mark.parametrize("seen", [(28, 32), (26, 38)])
def test_equals_timm_where_windows_do_not_fill_the_grid(seen, tmp_path):
    """Without shifted layers: timm pads after its shift, so that tokens from opposite edges see each other there."""
    theirs = reference((24, 24), depths=(1, 1))
    checkpoint = stored(theirs, tmp_path)
    ours = create("swin", **{**checkpoint.arguments, "fitting": "published"}).eval()
    ours.load_state_dict(checkpoint.state)
    assert_same(ours, theirs, torch.randn(2, 5, *seen))


@pytest.mark.parametrize("size", ["T", "S", "B", "L"])
def test_named_sizes_have_the_names_and_shapes_of_timm(size):
    timm = import_timm()
    name = {"T": "tiny", "S": "small", "B": "base", "L": "large"}[size]
    with torch.device("meta"):
        theirs = timm.create_model(f"swin_{name}_patch4_window7_224").state_dict()
        ours = create("swin", size, image_size=(224, 224), in_channels=3, num_classes=1000).state_dict()
    arguments = {"depths": (2, 2, 6 if size == "T" else 18, 2), "in_channels": 3, "patch_size": 4}
    found = layout_for("swin", "timm").to_theirs(ours, arguments)
    assert {key: tensor.shape for key, tensor in found.items()} == {key: t.shape for key, t in theirs.items()}
