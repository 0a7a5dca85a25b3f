"""ViT and DeiT against timm's: the same weights, read by our loader, and the way back."""

import json

import pytest
import torch
from benchmarks.peers import import_timm
from safetensors.torch import save_file
from tests.weights.references import assert_same, shaken

from mirada.errors import MiradaError
from mirada.systems import create
from mirada.weights import layout_for, layout_of, read_checkpoint
from mirada.weights.resize import other_channels, other_grid, other_patch

pytestmark = pytest.mark.peers

SHAPE = {
    "patch_size": 4,
    "in_chans": 5,
    "num_classes": 7,
    "embed_dim": 24,
    "depth": 3,
    "num_heads": 2,
    "mlp_ratio": 2.0,
}
KINDS = {
    "class": {"class_token": True},
    "mean": {"class_token": False, "global_pool": "avg", "fc_norm": False},
    "scaled": {"class_token": True, "init_values": 0.1},
    "no bias": {"class_token": True, "qkv_bias": False},
}


def timm_vit(image_size, **arguments):
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    return shaken(VisionTransformer(img_size=image_size, **{**SHAPE, **arguments}))


def timm_deit(image_size):
    import_timm()
    from timm.models.deit import VisionTransformerDistilled

    return shaken(VisionTransformerDistilled(img_size=image_size, **SHAPE))


def stored(model, folder, **config):
    """As timm writes it to the hub."""
    save_file(model.state_dict(), folder / "model.safetensors")
    said = {"architecture": "vit_of_a_test", "num_classes": 7, "model_args": {"num_heads": 2}, **config}
    (folder / "config.json").write_text(json.dumps(said))
    return read_checkpoint(folder)


@pytest.mark.parametrize("image_size", [(16, 16), (12, 20)])
@pytest.mark.parametrize("kind", KINDS)
def test_vit_equals_timm_at_its_size(image_size, kind, tmp_path):
    theirs = timm_vit(image_size, **KINDS[kind])
    pretrained = {"input_size": [5, *image_size], "mean": [0.5] * 5, "std": [0.2] * 5}
    checkpoint = stored(theirs, tmp_path, pretrained_cfg=pretrained)
    assert (checkpoint.system, checkpoint.origin) == ("vit", "timm")
    assert checkpoint.normalisation == ((0.5,) * 5, (0.2,) * 5)
    ours = create("vit", **checkpoint.arguments).eval()
    missing, unexpected = ours.load_state_dict(dict(checkpoint.state), strict=False)
    assert not unexpected
    assert bool(missing) == (kind == "no bias")  # these start at zero, which is the same
    assert all(name.endswith(("to_q.bias", "to_k.bias", "to_v.bias")) for name in missing)
    assert_same(ours, theirs, torch.randn(3, 5, *image_size))


def test_deit_equals_timm_and_goes_back(tmp_path):
    theirs = timm_deit((12, 20))
    checkpoint = stored(theirs, tmp_path, pretrained_cfg={"input_size": [5, 12, 20]})
    assert (checkpoint.system, checkpoint.origin) == ("deit", "timm")
    ours = checkpoint.model()
    assert_same(ours, theirs, torch.randn(3, 5, 12, 20))
    back = layout_for("deit", "timm").to_theirs(ours.state_dict(), checkpoint.arguments)
    assert all(torch.equal(tensor, back.pop(name)) for name, tensor in theirs.state_dict().items()) and not back


def test_positions_of_another_grid_equal_timm():
    """But for antialiasing, which timm has on where it adapts a checkpoint and transformers never has."""
    import_timm()
    from timm.layers import resample_abs_pos_embed

    table = torch.randn(1 + 3 * 3, 11)
    wanted = resample_abs_pos_embed(table[None], (7, 5), num_prefix_tokens=1, antialias=False)[0]
    torch.testing.assert_close(other_grid(table, (3, 3), (7, 5), num_extra=1), wanted, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("sides", [(7, 7), (2, 2), (3, 5)])
def test_kernel_of_another_patch_equals_timm(sides):
    import_timm()
    from timm.layers.patch_embed import resample_patch_embed

    kernel = torch.randn(11, 5, 4, 4)
    torch.testing.assert_close(
        other_patch(kernel, sides), resample_patch_embed(kernel, list(sides)), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("channels", [1, 2, 4, 13])
def test_other_channels_equal_timm(channels):
    import_timm()
    from timm.models._manipulate import adapt_input_conv

    kernel = torch.randn(11, 3, 4, 4)
    torch.testing.assert_close(other_channels(kernel, channels), adapt_input_conv(channels, kernel))


@pytest.mark.parametrize(
    ("size", "name"),
    [("Ti/16", "vit_tiny_patch16_224"), ("S/16", "vit_small_patch16_224"), ("B/32", "vit_base_patch32_224")],
)
def test_a_named_size_is_recognised_by_shapes_alone(size, name):
    timm = import_timm()
    with torch.device("meta"):
        theirs = timm.create_model(name)
    shapes = {key: tuple(tensor.shape) for key, tensor in theirs.state_dict().items()}
    arguments = layout_of({}, shapes).arguments({}, shapes)
    with torch.device("meta"):
        ours = create("vit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
        found = create("vit", **arguments)
    assert {k: t.shape for k, t in found.state_dict().items()} == {k: t.shape for k, t in ours.state_dict().items()}
    assert (
        found.encoder.layers[0].attention.inner.heads.num_heads
        == ours.encoder.layers[0].attention.inner.heads.num_heads
    )


@pytest.mark.parametrize("variant", [{"reg_tokens": 2}, {"pre_norm": True}, {"global_pool": "avg"}, {"qk_norm": True}])
def test_variants_that_we_have_not_are_refused(variant, tmp_path):
    with pytest.raises(MiradaError):
        stored(timm_vit((16, 16), **variant), tmp_path, model_args={"num_heads": 2, **variant})
