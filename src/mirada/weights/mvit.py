"""MViTv2 as timm names it; transformers has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.weights.layout import Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, ratio_of

BLOCK, LAYER = "stages.{s}.blocks.{i}.", "stages.{s}.{i}."
ATTENTION = LAYER + "attention."
HEADS = ATTENTION + "heads."


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    dim, in_channels, kernel, _ = shapes["patch_embed.proj.weight"]
    patch_size = (kernel + 1) // 2
    num_rows, head_dim = shapes["stages.0.blocks.0.attn.rel_pos_h"]
    # The first layer's queries are not pooled, and offsets on a side of n tokens are 2n − 1.
    side = (num_rows + 1) // 2 * patch_size
    num_stages = depth_of(shapes, "stages.{i}.blocks.0.")
    by_mlp = any(".shortcut_proj_mlp." in name for name in shapes)
    return {
        "image_size": (side, side),
        "in_channels": in_channels,
        "num_classes": shapes.get("head.fc.weight", (1,))[0],
        "dim": dim,
        "depths": tuple(depth_of(shapes, f"stages.{stage}.blocks.{{i}}.") for stage in range(num_stages)),
        "num_heads": dim // head_dim,
        "mlp_ratio": ratio_of(shapes["stages.0.blocks.0.mlp.fc1.weight"][0], dim),
        "patch_size": patch_size,
        "key_stride": 4,  # of every model in timm; no tensor's shape tells it
        "widening": "mlp" if by_mlp else "attention",
    }


def _is_timm(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return {"patch_embed.proj.weight", "stages.0.blocks.0.attn.rel_pos_h"} <= set(names)


LAYOUTS = (
    Layout(
        system="mvit",
        origin="timm",
        entries=(
            Entry("patch_embed.proj.{p}", "patches.{p}"),
            Entry(BLOCK + "norm1.{p}", LAYER + "attention_norm.{p}"),
            Entry(BLOCK + "attn.qkv.{p}", (HEADS + "to_q.{p}", HEADS + "to_k.{p}", HEADS + "to_v.{p}")),
            Entry(BLOCK + "attn.proj.{p}", HEADS + "to_out.{p}"),
            *(Entry(f"{BLOCK}attn.pool_{x}.{{p}}", f"{ATTENTION}pool_{x}.conv.{{p}}") for x in "qkv"),
            *(Entry(f"{BLOCK}attn.norm_{x}.{{p}}", f"{ATTENTION}pool_{x}.norm.{{p}}") for x in "qkv"),
            Entry(BLOCK + "attn.rel_pos_h", ATTENTION + "attend.position.row_table"),
            Entry(BLOCK + "attn.rel_pos_w", ATTENTION + "attend.position.column_table"),
            Entry(BLOCK + "shortcut_proj_attn.{p}", LAYER + "attention_skip.{p}"),
            Entry(BLOCK + "norm2.{p}", LAYER + "mlp_norm.{p}"),
            Entry(BLOCK + "mlp.fc1.{p}", LAYER + "mlp.expand.{p}"),
            Entry(BLOCK + "mlp.fc2.{p}", LAYER + "mlp.contract.{p}"),
            Entry(BLOCK + "shortcut_proj_mlp.{p}", LAYER + "mlp_skip.{p}"),
            Entry("norm.{p}", "norm.{p}"),
            Entry("head.fc.{p}", "head.{p}"),
        ),
        recognises=_is_timm,
        arguments=_arguments,
    ),
)
