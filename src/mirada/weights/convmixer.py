"""ConvMixer as timm names it; transformers has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.nn.patches import as_size
from mirada.weights.layout import Entry, Layout, Shapes
from mirada.weights.shapes import depth_of

USUAL_SIDE = 224
WITH_RELU = (768, 32)  # dim and depth of the one published network that has it

ENTRIES = (
    Entry("stem.{k}.{p}", "stem.{k}.{p}"),
    Entry("blocks.{i}.0.fn.{k}.{p}", "blocks.{i}.0.inner.{k}.{p}"),
    Entry("blocks.{i}.1.{p}", "blocks.{i}.1.0.{p}"),
    Entry("blocks.{i}.3.{p}", "blocks.{i}.1.2.{p}"),
    Entry("head.{p}", "head.{p}"),
)


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    said = {**config.get("pretrained_cfg", {}), **config.get("model_args", {})}
    dim, in_channels, patch_size, _ = shapes["stem.0.weight"]
    depth = depth_of(shapes, "blocks.{i}.")
    size = said.get("input_size", (USUAL_SIDE, USUAL_SIDE))
    return {
        "image_size": as_size(tuple(size[-2:])),
        "in_channels": in_channels,
        "num_classes": shapes.get("head.weight", (1,))[0],
        "dim": dim,
        "depth": depth,
        "kernel_size": shapes["blocks.0.0.fn.0.weight"][-1],
        "patch_size": patch_size,
        "activation": said.get("act_layer") or ("relu" if (dim, depth) == WITH_RELU else "gelu"),
    }


def _is_convmixer(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return {"stem.0.weight", "blocks.0.0.fn.0.weight", "blocks.0.3.running_mean"} <= set(names)


LAYOUTS = (Layout(system="convmixer", origin="timm", entries=ENTRIES, recognises=_is_convmixer, arguments=_arguments),)
