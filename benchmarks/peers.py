"""Other libraries, imported so that they load beside a CPU build of torch."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Shape:
    """Of a ViT with linear patches, a class token and learned positions, on square images in colour."""

    image_size: int
    num_classes: int
    patch_size: int
    dim: int
    depth: int
    num_heads: int
    mlp_ratio: float = 4.0

    @property
    def hidden_dim(self) -> int:
        return int(self.dim * self.mlp_ratio)


def timm_vit(**arguments: Any) -> nn.Module | None:
    """timm's ViT of a Shape, or None where timm is not installed."""
    if importlib.util.find_spec("timm") is None:
        return None
    import_timm()
    from timm.models.vision_transformer import VisionTransformer

    shape = Shape(**arguments)
    return VisionTransformer(
        shape.image_size,
        shape.patch_size,
        num_classes=shape.num_classes,
        embed_dim=shape.dim,
        depth=shape.depth,
        num_heads=shape.num_heads,
        mlp_ratio=shape.mlp_ratio,
    )


def vits(**arguments: Any) -> dict[str, nn.Module]:
    """ViTs of other libraries in one Shape; without timm, whose environment has the others too, torch's alone."""
    shape, timm = Shape(**arguments), timm_vit(**arguments)
    if timm is None:
        return {"nn.TransformerEncoder": EncoderViT(shape)}
    makers = {"transformers": _transformers, "vit-pytorch": _vit_pytorch, "x-transformers": _x_transformers}
    others = {name: make(shape) for name, make in makers.items()}
    return {"timm": timm, "nn.TransformerEncoder": EncoderViT(shape), **others}


def _transformers(shape: Shape) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        image_size=shape.image_size,
        patch_size=shape.patch_size,
        hidden_size=shape.dim,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.num_heads,
        intermediate_size=shape.hidden_dim,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=shape.num_classes,
    )
    return _Logits(ViTForImageClassification(config))


class _Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        return self.model(images_BCHW).logits


def _vit_pytorch(shape: Shape) -> nn.Module:
    from vit_pytorch import ViT

    return ViT(
        image_size=shape.image_size,
        patch_size=shape.patch_size,
        num_classes=shape.num_classes,
        dim=shape.dim,
        depth=shape.depth,
        heads=shape.num_heads,
        dim_head=shape.dim // shape.num_heads,
        mlp_dim=shape.hidden_dim,
    )


def _x_transformers(shape: Shape) -> nn.Module:
    from x_transformers import Encoder, ViTransformerWrapper

    layers = Encoder(
        dim=shape.dim,
        depth=shape.depth,
        heads=shape.num_heads,
        attn_dim_head=shape.dim // shape.num_heads,
        ff_mult=shape.mlp_ratio,
        attn_flash=True,
    )
    return ViTransformerWrapper(
        image_size=shape.image_size, patch_size=shape.patch_size, num_classes=shape.num_classes, attn_layers=layers
    )


class EncoderViT(nn.Module):
    """torch's own layers, with what a Shape has around them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, shape.dim, shape.patch_size, shape.patch_size)
        self.token = nn.Parameter(torch.zeros(1, 1, shape.dim))
        num_patches = (shape.image_size // shape.patch_size) ** 2
        self.position = nn.Parameter(0.02 * torch.randn(1, 1 + num_patches, shape.dim))
        layer = nn.TransformerEncoderLayer(
            shape.dim, shape.num_heads, shape.hidden_dim, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, shape.depth, nn.LayerNorm(shape.dim), enable_nested_tensor=False)
        self.head = nn.Linear(shape.dim, shape.num_classes)

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        x_BND = self.patches(images_BCHW).flatten(2).mT
        x_BND = torch.cat([self.token.expand(len(x_BND), -1, -1), x_BND], dim=1) + self.position
        return self.head(self.encoder(x_BND)[:, 0])
