"""Other libraries, imported so that they load beside a CPU build of torch."""

from __future__ import annotations

import functools
import importlib.util

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
