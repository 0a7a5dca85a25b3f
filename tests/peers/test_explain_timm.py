"""Looks of timm's models under their default kernels: all layers, the same output, with gradient; or a refusal."""

import pytest
import torch
from benchmarks.peers import import_timm

from mirada.errors import MiradaError
from mirada.explain.foreign import capture, foreign_looks, patches_of, reading_rows
from mirada.explain.looks import Tokens

pytestmark = pytest.mark.peers

# Name, image size, number of maps, tokens, what the classifier reads, name of the last map.
MODELS = {
    "ViT": ("vit_tiny_patch16_224", (48, 80), 12, Tokens((3, 5), 1), "first", "blocks.11.attn"),
    "DeiT": ("deit_tiny_distilled_patch16_224", (48, 80), 12, Tokens((3, 5), 2), "first two", "blocks.11.attn"),
    "DINOv2": ("vit_small_patch14_reg4_dinov2", (42, 70), 12, Tokens((3, 5), 5), "first", "blocks.11.attn"),
    "EVA-02": ("eva02_tiny_patch14_224", (42, 70), 12, Tokens((3, 5), 1), "mean", "blocks.11.attn"),
    "BEiT": ("beit_base_patch16_224", (48, 80), 12, Tokens((3, 5), 1), "mean", "blocks.11.attn"),
    "SigLIP": ("vit_base_patch32_siglip_256", (96, 160), 13, Tokens((3, 5)), "pool", "attn_pool"),
    "rotary": ("vit_base_patch16_rope_reg1_gap_256", (48, 80), 12, Tokens((3, 5), 1), "mean", "blocks.11.attn"),
    "relative": ("vit_relpos_small_patch16_224", (48, 80), 12, Tokens((3, 5)), "mean", "blocks.11.attn"),
    "hybrid": ("vit_tiny_r_s16_p8_224", (96, 160), 12, Tokens((3, 5), 1), "first", "blocks.11.attn"),
    "perception": ("vit_pe_core_tiny_patch16_384", (48, 80), 13, Tokens((3, 5), 1), "pool", "attn_pool"),
}


def build(name, size, **arguments):
    """A fresh model, but for its head and layer scales: at (next to) zero they would leave no gradient."""
    model = import_timm().create_model(name, img_size=size, num_classes=7, **arguments).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "gamma" in key:
                parameter.normal_(0.5, 0.2)
            elif "head" in key:
                parameter.normal_(0, 0.02)
    return model


def second_class(output):
    return output[:, 1]


@pytest.mark.parametrize("family", MODELS)
def test_all_layers_with_gradient(family):
    name, size, count, tokens, reads, last = MODELS[family]
    model, images = build(name, size), torch.randn(2, 3, *size)
    assert patches_of(model, size) == tokens
    with torch.no_grad():
        plain = model(images)
    looks, output = foreign_looks(model, images, second_class)
    torch.testing.assert_close(output, plain, rtol=0, atol=1e-5)
    assert len(looks) == count and looks[-1].name == last
    for look in looks:
        pooled = look.name == "attn_pool"
        assert (look.queries, look.keys) == (Tokens((1,)) if pooled else tokens, tokens)
        assert look.weights_BHNM.shape[2:] == (len(look.queries), len(look.keys))
        torch.testing.assert_close(look.weights_BHNM.sum(-1), torch.ones(look.weights_BHNM.shape[:3]))
        assert look.gradient_BHNM.shape == look.weights_BHNM.shape and look.gradient_BHNM.abs().max() > 0
    assert reading_rows(model) == reads
    patches = range(tokens.num_extra, len(tokens))
    rows = {"first": [0], "first two": [0, 1], "mean": [*patches], "pool": [0]}[reads]
    gradient_N = looks[-1].gradient_BHNM.abs().amax((0, 1, 3))
    assert gradient_N.nonzero().flatten().tolist() == rows


def test_maps_are_those_of_the_explicit_kernel():
    """timm's own way to have weights: fused attention switched off before the model is made, and a hook."""
    import_timm()
    from timm.layers import set_fused_attn

    images = torch.randn(2, 3, 48, 80)
    torch.manual_seed(1)
    fused = build("vit_tiny_patch16_224", (48, 80))
    set_fused_attn(False)
    try:
        explicit = build("vit_tiny_patch16_224", (48, 80))
    finally:
        set_fused_attn(True)
    explicit.load_state_dict(fused.state_dict())
    wanted = []
    for block in explicit.blocks:
        block.attn.attn_drop.register_forward_hook(lambda module, given, weights: wanted.append(weights))
    with torch.no_grad():
        explicit(images)
    assert len(wanted) == 12
    for model in (fused, explicit):
        looks, _ = foreign_looks(model, images)
        torch.testing.assert_close([look.weights_BHNM for look in looks], wanted[:12], rtol=0, atol=1e-6)


def test_images_of_any_size():
    model = build("vit_tiny_patch16_224", (48, 80), dynamic_img_size=True)
    looks, _ = foreign_looks(model, torch.randn(2, 3, 112, 32))
    assert all(look.keys == Tokens((7, 2), 1) for look in looks)
    padded = build("vit_tiny_patch16_224", (48, 80), dynamic_img_size=True, dynamic_img_pad=True)
    looks, _ = foreign_looks(padded, torch.randn(2, 3, 101, 30))
    assert all(look.keys == Tokens((7, 2), 1) for look in looks)


@pytest.mark.parametrize(
    ("name", "arguments", "size", "reason"),
    [
        ("resnet18", {}, 64, "ResNet ran no attention"),
        (
            "swin_tiny_patch4_window7_224",
            {"img_size": 56},
            56,
            r"SwinT.*\(WindowAttention\) gives \d+ maps for 2",
        ),
        ("cait_xxs24_224", {"img_size": 64}, 64, r"Cait .*\(TalkingHeadAttn\) has a softmax of its own"),
        ("xcit_nano_12_p16_224", {}, 64, r"Xcit .*\(XCA\) weighs channels by channels"),
        ("volo_d1_224", {"img_size": 64}, 64, r"VOLO .*\(OutlookAttention\) has weights of shape \(2, 6, 16, 9, 9\)"),
        ("mvitv2_tiny", {"img_size": 64}, 64, "MultiScaleVit does not tell its patch size: give tokens="),
        ("vit_dlittle_patch16_reg1_gap_256", {"img_size": 64}, 64, r"\(DiffAttention\) subtracts one attention"),
        ("convit_tiny", {"img_size": 64}, 64, r"ConVit .*\(GPSA\) has a softmax of its own"),
    ],
)
def test_refusal_names_the_class_and_the_reason(name, arguments, size, reason):
    model = import_timm().create_model(name, num_classes=7, **arguments).eval()
    with pytest.raises(MiradaError, match=reason):
        foreign_looks(model, torch.randn(2, 3, size, size))


def test_pooled_tokens_are_refused_also_with_a_layout():
    model = import_timm().create_model("mvitv2_tiny", img_size=64, num_classes=7).eval()
    with pytest.raises(MiradaError, match=r"\(MultiScaleAttention\) has 256 queries and 16 keys, expected 16 × 16"):
        foreign_looks(model, torch.randn(2, 3, 64, 64), tokens=Tokens((16, 16)))


def test_model_of_vit_pytorch_with_a_given_layout():
    """A softmax module of its own, and patches that no attribute tells."""
    from vit_pytorch import ViT

    model = ViT(image_size=20, patch_size=4, num_classes=7, dim=24, depth=3, heads=2, mlp_dim=29, dim_head=11).eval()
    images = torch.randn(2, 3, 20, 20)
    with torch.no_grad(), capture(model) as captured:
        output = model(images)
    torch.testing.assert_close(output, model(images), rtol=0, atol=1e-5)
    assert [found.layer for found in captured.maps] == ["Attention"] * 3
    looks, _ = foreign_looks(model, images, second_class, tokens=Tokens((5, 5), 1))
    assert all(look.weights_BHNM.shape == (2, 2, 26, 26) and look.gradient_BHNM.abs().max() > 0 for look in looks)
