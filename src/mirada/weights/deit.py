"""DeiT with its distillation token, as transformers and timm name it. Without that token it is a ViT for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.weights.layout import TOKENS, Arguments, Entry, Layout, Shapes
from mirada.weights.vit import (
    TIMM_ENTRIES,
    require_plain,
    timm_arguments,
    transformers_arguments,
    transformers_config,
    transformers_entries,
)


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    heads = [shapes[name] for name in ("cls_classifier.weight", "classifier.weight") if name in shapes]
    return {
        **transformers_arguments("deit", "deit.", 2, config, shapes),
        "num_classes": heads[0][0] if heads else 1,
        "distillation": "token",
    }


def _config(arguments: Arguments) -> dict[str, Any]:
    require_plain("deit", arguments, {"stem": "linear", "distillation": "token"})
    name = "DeiTForImageClassificationWithTeacher"
    return {"architectures": [name], "model_type": "deit", **transformers_config(arguments)}


def _is_deit(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    named = "embeddings.distillation_token" in {name.removeprefix("deit.") for name in names}
    return named and config.get("model_type", "deit") == "deit"


def _timm_arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {**timm_arguments("deit", 2, config, shapes), "distillation": "token"}


def _is_timm_deit(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return {"patch_embed.proj.weight", "dist_token"} <= set(names)


LAYOUTS = (
    Layout(
        system="deit",
        origin="transformers",
        entries=(
            *transformers_entries("deit."),
            Entry("deit.embeddings.distillation_token", "extra.distillation", TOKENS),
            Entry("cls_classifier.{p}", "head.{p}"),
            Entry("distillation_classifier.{p}", "distillation_head.{p}"),
            Entry("classifier.{p}", "head.{p}"),
        ),
        recognises=_is_deit,
        arguments=_arguments,
        config=_config,
        prefix="deit.",
        ignored=("deit.pooler.dense.{p}", "deit.embeddings.mask_token"),
    ),
    Layout(
        system="deit",
        origin="timm",
        entries=(
            *TIMM_ENTRIES,
            Entry("dist_token", "extra.distillation", TOKENS),
            Entry("head_dist.{p}", "distillation_head.{p}"),
        ),
        recognises=_is_timm_deit,
        arguments=_timm_arguments,
    ),
)
