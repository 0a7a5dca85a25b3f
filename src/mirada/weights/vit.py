"""ViT as transformers (names of version 5, and the older ones that its files still have) and timm name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.nn.patches import as_size
from mirada.systems.vit import derived_patch_size
from mirada.weights.layout import KERNEL, TABLE, TOKENS, Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, image_size_of, num_heads_of, ratio_of

LAYER = "encoder.layers.{i}."
HEADS = LAYER + "attention.inner.heads."
PLAIN = {"stem": "linear", "position": "learned", "pooling": "class", "attention": "standard", "layer_scale": None}


def transformers_entries(prefix: str) -> tuple[Entry, ...]:
    """Of everything but the heads. What is saved is of the older names, which every version reads."""
    old, new = prefix + "encoder.layer.{i}.", prefix + "layers.{i}."
    return (
        Entry(prefix + "embeddings.cls_token", "extra.weight", TOKENS),
        Entry(prefix + "embeddings.position_embeddings", "position.weight", TABLE),
        Entry(prefix + "embeddings.patch_embeddings.projection.weight", "patches.projection.weight", KERNEL),
        Entry(prefix + "embeddings.patch_embeddings.projection.bias", "patches.projection.bias"),
        Entry(old + "attention.attention.query.{p}", HEADS + "to_q.{p}"),
        Entry(old + "attention.attention.key.{p}", HEADS + "to_k.{p}"),
        Entry(old + "attention.attention.value.{p}", HEADS + "to_v.{p}"),
        Entry(old + "attention.output.dense.{p}", HEADS + "to_out.{p}"),
        Entry(old + "layernorm_before.{p}", LAYER + "attention.norm.{p}"),
        Entry(old + "layernorm_after.{p}", LAYER + "mlp.norm.{p}"),
        Entry(old + "intermediate.dense.{p}", LAYER + "mlp.inner.expand.{p}"),
        Entry(old + "output.dense.{p}", LAYER + "mlp.inner.contract.{p}"),
        Entry(new + "attention.q_proj.{p}", HEADS + "to_q.{p}"),
        Entry(new + "attention.k_proj.{p}", HEADS + "to_k.{p}"),
        Entry(new + "attention.v_proj.{p}", HEADS + "to_v.{p}"),
        Entry(new + "attention.o_proj.{p}", HEADS + "to_out.{p}"),
        Entry(new + "layernorm_before.{p}", LAYER + "attention.norm.{p}"),
        Entry(new + "layernorm_after.{p}", LAYER + "mlp.norm.{p}"),
        Entry(new + "mlp.fc1.{p}", LAYER + "mlp.inner.expand.{p}"),
        Entry(new + "mlp.fc2.{p}", LAYER + "mlp.inner.contract.{p}"),
        Entry(prefix + "layernorm.{p}", "encoder.norm.{p}"),
    )


TIMM_ENTRIES = (
    Entry("cls_token", "extra.weight", TOKENS),
    Entry("pos_embed", "position.weight", TABLE),
    Entry("patch_embed.proj.weight", "patches.projection.weight", KERNEL),
    Entry("patch_embed.proj.bias", "patches.projection.bias"),
    Entry("blocks.{i}.attn.qkv.{p}", (HEADS + "to_q.{p}", HEADS + "to_k.{p}", HEADS + "to_v.{p}")),
    Entry("blocks.{i}.attn.proj.{p}", HEADS + "to_out.{p}"),
    Entry("blocks.{i}.norm1.{p}", LAYER + "attention.norm.{p}"),
    Entry("blocks.{i}.norm2.{p}", LAYER + "mlp.norm.{p}"),
    Entry("blocks.{i}.ls1.gamma", LAYER + "attention.branch.0.weight"),
    Entry("blocks.{i}.ls2.gamma", LAYER + "mlp.branch.0.weight"),
    Entry("blocks.{i}.mlp.fc1.{p}", LAYER + "mlp.inner.expand.{p}"),
    Entry("blocks.{i}.mlp.fc2.{p}", LAYER + "mlp.inner.contract.{p}"),
    Entry("norm.{p}", "encoder.norm.{p}"),
    Entry("head.{p}", "head.{p}"),
)


def transformers_arguments(
    system: str, prefix: str, num_extra: int, config: Mapping[str, Any], shapes: Shapes
) -> dict[str, Any]:
    """Of a ViT or DeiT; the number of classes is left to the caller, who knows the heads."""
    activation = config.get("hidden_act", "gelu")
    if activation != "gelu":
        raise MiradaError(f"the checkpoint's activation is {activation!r}, but system {system!r} has 'gelu' only")
    dim, in_channels, patch_size, _ = shapes[prefix + "embeddings.patch_embeddings.projection.weight"]
    depth = depth_of(shapes, prefix + "encoder.layer.{i}.") or depth_of(shapes, prefix + "layers.{i}.")
    hidden = prefix + "encoder.layer.0.intermediate.dense.bias", prefix + "layers.0.mlp.fc1.bias"
    num_patches = shapes[prefix + "embeddings.position_embeddings"][1] - num_extra
    return {
        "image_size": image_size_of(config.get("image_size"), patch_size, num_patches),
        "in_channels": in_channels,
        "dim": dim,
        "depth": depth,
        "num_heads": num_heads_of(config.get("num_attention_heads"), system, dim, depth),
        "mlp_ratio": ratio_of(next(shapes[name][0] for name in hidden if name in shapes), dim),
        "patch_size": patch_size,
        "stem": "linear",
        "norm_eps": config.get("layer_norm_eps", 1e-12),
    }


def transformers_config(arguments: Arguments) -> dict[str, Any]:
    """What ViT and DeiT say alike."""
    size = as_size(arguments["image_size"])
    patch_size = arguments["patch_size"] or derived_patch_size(size)
    if size[0] % patch_size or size[1] % patch_size:
        raise MiradaError(
            f"images of {size[0]} × {size[1]} pixels are no whole number of patches of {patch_size}, which "
            f"transformers does not take: train at another data.image_size to export in its layout"
        )
    return {
        "hidden_size": arguments["dim"],
        "num_hidden_layers": arguments["depth"],
        "num_attention_heads": arguments["num_heads"],
        "intermediate_size": int(arguments["dim"] * arguments["mlp_ratio"]),
        "hidden_act": "gelu",
        "hidden_dropout_prob": arguments["dropout"],
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": arguments["norm_eps"],
        "image_size": size[0] if size[0] == size[1] else list(size),
        "patch_size": patch_size,
        "num_channels": arguments["in_channels"],
        "qkv_bias": True,
    }


def require_plain(system: str, arguments: Arguments, plain: Mapping[str, Any]) -> None:
    """Only the published model has a place in another library."""
    for name, published in plain.items():
        if arguments[name] != published:
            raise MiradaError(
                f"{name}={arguments[name]!r} is no part of the {system} of transformers, which has {published!r}: "
                f"train with system.arguments.{name}={published}, or export as safetensors"
            )


def _vit_arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    num_classes = shapes.get("classifier.weight", (1,))[0]
    plain = {name: value for name, value in PLAIN.items() if name != "layer_scale"}
    return {**transformers_arguments("vit", "vit.", 1, config, shapes), **plain, "num_classes": num_classes}


def _vit_config(arguments: Arguments) -> dict[str, Any]:
    require_plain("vit", arguments, PLAIN)
    return {"architectures": ["ViTForImageClassification"], "model_type": "vit", **transformers_config(arguments)}


def _is_vit(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    names = {name.removeprefix("vit.") for name in names}
    first = {"encoder.layer.0.layernorm_before.weight", "layers.0.layernorm_before.weight"}
    is_plain = "embeddings.cls_token" in names and "embeddings.distillation_token" not in names
    return config.get("model_type", "vit") == "vit" and is_plain and bool(first & names)


def timm_arguments(system: str, num_extra: int, config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """Of a ViT or DeiT, from timm's config.json: an architecture, model_args, pretrained_cfg."""
    said = {**config.get("pretrained_cfg", {}), **config.get("model_args", {})}
    for name, usual in (("act_layer", "gelu"), ("pre_norm", False), ("no_embed_class", False)):
        if said.get(name) not in (None, usual):
            raise MiradaError(f"the checkpoint has {name}={said[name]!r}, but system {system!r} has {usual!r} only")
    dim, in_channels, patch_size, _ = shapes["patch_embed.proj.weight"]
    depth = depth_of(shapes, "blocks.{i}.")
    return {
        "image_size": image_size_of(
            said.get("img_size", said.get("input_size")), patch_size, shapes["pos_embed"][1] - num_extra
        ),
        "in_channels": in_channels,
        "num_classes": shapes.get("head.weight", (1,))[0],
        "dim": dim,
        "depth": depth,
        "num_heads": num_heads_of(said.get("num_heads", config.get("num_attention_heads")), system, dim, depth),
        "mlp_ratio": ratio_of(shapes["blocks.0.mlp.fc1.weight"][0], dim),
        "patch_size": patch_size,
        "stem": "linear",
        "norm_eps": 1e-6,
    }


def _timm_vit_arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    has_class = "cls_token" in shapes
    pooled = config.get("global_pool", "token" if has_class else "avg")
    if pooled != ("token" if has_class else "avg"):
        raise MiradaError(f"the checkpoint has global_pool={pooled!r} beside a class token, which system 'vit' has not")
    return {
        **timm_arguments("vit", int(has_class), config, shapes),
        "position": "learned",
        "pooling": "class" if has_class else "mean",
        "attention": "standard",
        # The factors themselves are read; this only says that there are some.
        "layer_scale": 1e-5 if "blocks.0.ls1.gamma" in shapes else None,
    }


def _is_timm_vit(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    names = set(names)
    return {"patch_embed.proj.weight", "pos_embed", "blocks.0.attn.qkv.weight"} <= names and "dist_token" not in names


LAYOUTS = (
    Layout(
        system="vit",
        origin="transformers",
        entries=(*transformers_entries("vit."), Entry("classifier.{p}", "head.{p}")),
        recognises=_is_vit,
        arguments=_vit_arguments,
        config=_vit_config,
        prefix="vit.",
        ignored=("vit.pooler.dense.{p}", "vit.embeddings.mask_token"),
    ),
    Layout(system="vit", origin="timm", entries=TIMM_ENTRIES, recognises=_is_timm_vit, arguments=_timm_vit_arguments),
)
