"""Other libraries, imported so that they load beside a CPU build of torch."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import torch
from torch import nn


@functools.cache
def declare_operators() -> torch.library.Library:
    """torchvision, which timm and transformers import, wants two operators that a CPU torch does not have."""
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # kept by the cache: they vanish with the object


def import_timm():
    declare_operators()
    import timm

    return timm


def timm_block(dim: int, num_heads: int) -> nn.Module | None:
    """timm's transformer block, or None where timm is not installed."""
    if importlib.util.find_spec("timm") is None:
        return None
    import_timm()
    from timm.models.vision_transformer import Block

    return Block(dim, num_heads, qkv_bias=True)


def timm_vit(
    *,
    image_size: int,
    num_classes: int,
    patch_size: int,
    dim: int,
    depth: int,
    num_heads: int,
    mlp_ratio: float = 4.0,
) -> nn.Module | None:
    """timm's ViT with linear patches, a class token and learned positions, or None where timm is not installed."""
    if importlib.util.find_spec("timm") is None:
        return None
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        image_size,
        patch_size,
        num_classes=num_classes,
        embed_dim=dim,
        depth=depth,
        num_heads=num_heads,
        mlp_ratio=mlp_ratio,
    )


def vits(*, image_size: int, num_classes: int, **shape: Any) -> dict[str, nn.Module]:
    """ViTs of other libraries in one shape, as many as are installed; torch's encoder between parts of its own."""
    found: dict[str, nn.Module | None] = {
        "timm": timm_vit(image_size=image_size, num_classes=num_classes, **shape),
        "nn.TransformerEncoder": EncoderViT(image_size, num_classes, **shape),
    }
    for name, make in MAKERS.items():
        is_there = importlib.util.find_spec(name.replace("-", "_")) is not None
        found[name] = make(image_size, num_classes, **shape) if is_there and found["timm"] is not None else None
    return {name: model for name, model in found.items() if model is not None}


def _transformers(
    image_size: int, num_classes: int, *, patch_size: int, dim: int, depth: int, num_heads: int, mlp_ratio: float = 4.0
) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        image_size=image_size,
        patch_size=patch_size,
        hidden_size=dim,
        num_hidden_layers=depth,
        num_attention_heads=num_heads,
        intermediate_size=int(dim * mlp_ratio),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=num_classes,
    )
    return _Logits(ViTForImageClassification(config))


class _Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        return self.model(images_BCHW).logits


def _vit_pytorch(
    image_size: int, num_classes: int, *, patch_size: int, dim: int, depth: int, num_heads: int, mlp_ratio: float = 4.0
) -> nn.Module:
    from vit_pytorch import ViT

    return ViT(
        image_size=image_size,
        patch_size=patch_size,
        num_classes=num_classes,
        dim=dim,
        depth=depth,
        heads=num_heads,
        dim_head=dim // num_heads,
        mlp_dim=int(dim * mlp_ratio),
    )


def _x_transformers(
    image_size: int, num_classes: int, *, patch_size: int, dim: int, depth: int, num_heads: int, mlp_ratio: float = 4.0
) -> nn.Module:
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(
        dim=dim, depth=depth, heads=num_heads, attn_dim_head=dim // num_heads, ff_mult=mlp_ratio, attn_flash=True
    )
    return ViTransformerWrapper(
        image_size=image_size, patch_size=patch_size, num_classes=num_classes, attn_layers=layers
    )


class EncoderViT(nn.Module):
    """torch's own layers, with linear patches, a class token and learned positions around them."""

    def __init__(
        self,
        image_size: int,
        num_classes: int,
        *,
        patch_size: int,
        dim: int,
        depth: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch_size, patch_size)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, 1 + (image_size // patch_size) ** 2, dim))
        layer = nn.TransformerEncoderLayer(
            dim, num_heads, int(dim * mlp_ratio), 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        x_BND = self.patches(images_BCHW).flatten(2).mT
        x_BND = torch.cat([self.token.expand(len(x_BND), -1, -1), x_BND], dim=1) + self.position
        return self.head(self.encoder(x_BND)[:, 0])


MAKERS = {"transformers": _transformers, "vit-pytorch": _vit_pytorch, "x-transformers": _x_transformers}
