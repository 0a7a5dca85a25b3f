"""ViT against timm's, with the same weights."""

import pytest
import torch
from benchmarks.peers import import_timm
from torch import Tensor

from mirada.systems import ViT, create

pytestmark = pytest.mark.peers


def from_timm(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Their weights under our names."""
    names = {
        "cls_token": "extra.weight",
        "pos_embed": "position.weight",
        "patch_embed.proj": "patches.projection",
        "blocks.": "encoder.layers.",
        "attn.proj": "attention.inner.heads.to_out",
        "attn.qkv": "attention.inner.heads.to_",
        "norm1": "attention.norm",
        "norm2": "mlp.norm",
        "mlp.fc1": "mlp.inner.expand",
        "mlp.fc2": "mlp.inner.contract",
    }
    ours = {}
    for name, weight in theirs.items():
        for their_part, our_part in names.items():
            name = name.replace(their_part, our_part)
        if name.startswith("norm."):
            name = f"encoder.{name}"
        if ".to_." in name:
            ours |= {
                name.replace(".to_.", f".to_{part}."): share for part, share in zip("qkv", weight.chunk(3), strict=True)
            }
        else:
            ours[name] = weight.flatten(1) if weight.ndim == 4 else weight[0] if weight.ndim == 3 else weight
    return ours


@pytest.mark.parametrize("image_size", [(16, 16), (12, 20)])
@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_equals_timm_in_output_and_input_gradient(image_size, pooling):
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    shape = {"img_size": image_size, "patch_size": 4, "in_chans": 5, "num_classes": 7}
    shape |= {"embed_dim": 24, "depth": 3, "num_heads": 2, "mlp_ratio": 2.0}
    pool = (
        {"class_token": True} if pooling == "class" else {"class_token": False, "global_pool": "avg", "fc_norm": False}
    )
    theirs = VisionTransformer(**shape, **pool).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    ours = ViT(
        image_size=image_size,
        in_channels=5,
        num_classes=7,
        dim=24,
        depth=3,
        num_heads=2,
        mlp_ratio=2.0,
        patch_size=4,
        pooling=pooling,
    ).eval()
    ours.load_state_dict(from_timm(theirs.state_dict()))
    x = torch.randn(3, 5, *image_size)
    own, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    logits, expected = ours(own), theirs(other)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn(3, 7)
    logits.backward(direction), expected.backward(direction)
    torch.testing.assert_close(own.grad, other.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("size", "name"),
    [("Ti/16", "vit_tiny_patch16_224"), ("S/16", "vit_small_patch16_224"), ("B/32", "vit_base_patch32_224")],
)
def test_named_sizes_have_the_shapes_of_timm(size, name):
    timm = import_timm()
    with torch.device("meta"):
        theirs = timm.create_model(name)
        ours = create("vit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    expected = {key: tensor.shape for key, tensor in from_timm(theirs.state_dict()).items()}
    assert {key: tensor.shape for key, tensor in ours.state_dict().items()} == expected
