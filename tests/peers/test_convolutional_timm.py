"""ConvMixer and the hybrid ViT against timm's: the same weights, read by our loader, and the way back."""

from functools import partial

import pytest
import torch
from benchmarks.peers import import_timm
from safetensors.torch import save_file
from tests.weights.references import assert_same, output_and_gradient, shaken

from mirada.systems import create
from mirada.weights import layout_for, read_checkpoint

pytestmark = pytest.mark.peers


def convmixer(activation):
    import_timm()
    from timm.models.convmixer import ConvMixer

    act_layer = {"gelu": torch.nn.GELU, "relu": torch.nn.ReLU}[activation]
    model = ConvMixer(24, 2, kernel_size=5, patch_size=3, in_chans=5, num_classes=7, act_layer=act_layer)
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.uniform_(0.5, 1.5)
    return shaken(model)


def hybrid(image_size):
    import_timm()
    from timm.layers import HybridEmbed, StdConv2dSame
    from timm.models.resnetv2 import ResNetV2
    from timm.models.vision_transformer import VisionTransformer

    backbone = ResNetV2(
        layers=(1, 2),
        channels=(128, 256),
        stem_chs=32,
        num_classes=0,
        global_pool="",
        in_chans=5,
        preact=False,
        stem_type="same",
        conv_layer=partial(StdConv2dSame, eps=1e-8),
    )
    model = VisionTransformer(
        embed_layer=partial(HybridEmbed, backbone=backbone),
        img_size=image_size,
        patch_size=1,
        in_chans=5,
        num_classes=7,
        embed_dim=128,
        depth=2,
        num_heads=2,
        mlp_ratio=2.0,
        dynamic_img_size=False,
    )
    return shaken(model)


def read_back(model, folder):
    save_file({name: t.contiguous() for name, t in model.state_dict().items()}, folder / "model.safetensors")
    return read_checkpoint(folder / "model.safetensors")


def assert_saved_alike(ours, theirs, system, arguments):
    back = layout_for(system, "timm").to_theirs(ours.state_dict(), arguments)
    assert set(back) == set(theirs.state_dict())
    assert all(torch.equal(back[name], tensor) for name, tensor in theirs.state_dict().items())


@pytest.mark.parametrize("size", [(12, 12), (15, 21)])
def test_convmixer_equals_timm(size, tmp_path):
    theirs = convmixer("gelu")
    checkpoint = read_back(theirs, tmp_path)
    assert checkpoint.system == "convmixer"
    ours = checkpoint.model()
    assert_same(ours, theirs, torch.randn(2, 5, *size))
    assert_saved_alike(ours, theirs, "convmixer", checkpoint.all_arguments)


def test_convmixer_with_relu_equals_timm():
    theirs = convmixer("relu")
    ours = create(
        "convmixer", image_size=12, in_channels=5, num_classes=7, dim=24, depth=2, kernel_size=5, patch_size=3,
        activation="relu",
    )  # fmt: skip
    ours.load_state_dict(layout_for("convmixer", "timm").to_ours(theirs.state_dict(), {}))
    assert_same(ours.eval(), theirs, torch.randn(2, 5, 12, 12))
    assert_same(ours.double().train(), theirs.double().train(), torch.randn(2, 5, 12, 12, dtype=torch.float64))


def assert_equal_in_float64(ours, theirs, size):
    """In float32 both are 1e-5 apart, as outputs are large after so many layers; here a wrong ε would show."""
    x = torch.randn(2, 5, *size, dtype=torch.float64)
    found, wanted = (output_and_gradient(model.double(), x) for model in (ours, theirs))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [(32, 32), (40, 40), (35, 37)])
def test_hybrid_equals_timm(size, tmp_path):
    """Also where a side is no multiple of the stride: every convolution rounds up."""
    theirs = hybrid(size)
    checkpoint = read_back(theirs, tmp_path)
    assert checkpoint.system == "vit_hybrid"
    ours = checkpoint.model()
    assert ours.backbone.stages[1][1].inner[0].weight.shape == (64, 256, 1, 1)
    assert_saved_alike(ours, theirs, "vit_hybrid", checkpoint.all_arguments)
    assert_equal_in_float64(ours, theirs, size)


def test_hybrid_equals_timm_on_rectangles():
    theirs = hybrid((24, 56))
    ours = create(
        "vit_hybrid", image_size=(24, 56), in_channels=5, num_classes=7, dim=128, depth=2, num_heads=2, mlp_ratio=2.0,
        backbone="resnet", width=32, stages=(1, 2),
    )  # fmt: skip
    ours.load_state_dict(layout_for("vit_hybrid", "timm").to_ours(theirs.state_dict(), {}))
    assert_equal_in_float64(ours.eval(), theirs, (24, 56))


@pytest.mark.parametrize(
    ("system", "size", "name", "image_size"),
    [
        ("convmixer", "1536/20", "convmixer_1536_20", 224),
        ("convmixer", "768/32", "convmixer_768_32", 224),
        ("convmixer", "1024/20", "convmixer_1024_20_ks9_p14", 224),
        ("vit_hybrid", "R50+B/16", "vit_base_r50_s16_384", 384),
    ],
)
def test_named_sizes_have_the_shapes_of_timm(system, size, name, image_size):
    timm = import_timm()
    theirs = timm.create_model(name)
    layout = layout_for(system, "timm")
    shapes = {key: tuple(tensor.shape) for key, tensor in theirs.state_dict().items()}
    with torch.device("meta"):
        named = create(system, size, image_size=image_size, in_channels=3, num_classes=1000)
        read = create(system, **layout.arguments({}, shapes))
    expected = {key: t.shape for key, t in layout.to_ours(theirs.state_dict(), {}).items()}
    for ours in (named, read):
        assert {key: tensor.shape for key, tensor in ours.state_dict().items()} == expected
