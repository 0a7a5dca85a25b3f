"""The hybrid of BiT's ResNet and ViT, as timm names it; transformers 5 has it no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.weights.layout import Change, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of
from mirada.weights.vit import TIMM_ENTRIES, timm_arguments

BACKBONE = "patch_embed.backbone."
UNIT, OUR_UNIT = BACKBONE + "stages.{s}.blocks.{i}.", "backbone.stages.{s}.{i}."
# (D, C, 1, 1) ↔ (D, C): every place of the feature map is a patch
PLACE = Change(lambda theirs, _: theirs.flatten(1), lambda ours, _: ours[:, :, None, None])

ENTRIES = (
    Entry(BACKBONE + "stem.conv.{p}", "backbone.stem.0.{p}"),
    Entry(BACKBONE + "stem.norm.{p}", "backbone.stem.1.{p}"),
    Entry(UNIT + "downsample.conv.{p}", OUR_UNIT + "shortcut.0.{p}"),
    Entry(UNIT + "downsample.norm.{p}", OUR_UNIT + "shortcut.1.{p}"),
    Entry(UNIT + "conv1.{p}", OUR_UNIT + "inner.0.{p}"),
    Entry(UNIT + "norm1.{p}", OUR_UNIT + "inner.1.{p}"),
    Entry(UNIT + "conv2.{p}", OUR_UNIT + "inner.3.{p}"),
    Entry(UNIT + "norm2.{p}", OUR_UNIT + "inner.4.{p}"),
    Entry(UNIT + "conv3.{p}", OUR_UNIT + "inner.6.{p}"),
    Entry(UNIT + "norm3.{p}", OUR_UNIT + "inner.7.{p}"),
    Entry("patch_embed.proj.weight", "patches.projection.weight", PLACE),
    *(entry for entry in TIMM_ENTRIES if entry.theirs != "patch_embed.proj.weight"),
)


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    if shapes["patch_embed.proj.weight"][-1] != 1:
        raise MiradaError("the checkpoint cuts a feature map into patches, but 'vit_hybrid' takes every place of it")
    num_stages = depth_of(shapes, BACKBONE + "stages.{i}.")
    width, in_channels = shapes[BACKBONE + "stem.conv.weight"][:2]
    stride = 4 * 2 ** (num_stages - 1)
    # As of a ViT whose patches are as large as the stride.
    as_patches = {**shapes, "patch_embed.proj.weight": (*shapes["patch_embed.proj.weight"][:2], stride, stride)}
    of_vit = timm_arguments("vit_hybrid", 1, config, as_patches)
    return {
        **{name: of_vit[name] for name in ("image_size", "num_classes", "dim", "depth", "num_heads", "mlp_ratio")},
        "in_channels": in_channels,
        "backbone": "resnet",
        "width": width,
        "stages": tuple(depth_of(shapes, f"{BACKBONE}stages.{s}.blocks.{{i}}.") for s in range(num_stages)),
    }


def _is_hybrid(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return {"pos_embed", BACKBONE + "stem.conv.weight", BACKBONE + "stages.0.blocks.0.conv3.weight"} <= set(names)


LAYOUTS = (Layout(system="vit_hybrid", origin="timm", entries=ENTRIES, recognises=_is_hybrid, arguments=_arguments),)
