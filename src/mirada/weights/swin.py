"""Swin as transformers (names of version 5, and the older ones), timm and the published code name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isqrt
from typing import Any

from mirada.core import Windows
from mirada.errors import MiradaError
from mirada.nn.patches import Size, as_size
from mirada.nn.windowed import masked, published
from mirada.systems.cvt import first_stride
from mirada.weights.layout import KERNEL, Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, ratio_of

LAYER = "stages.{s}.layers.{i}."
ATTENTION = LAYER + "attention.inner.attention."
HEADS = ATTENTION + "heads."
TABLE = ATTENTION + "attend.position.table"
EPS = 1e-5

STORED = "swin.encoder.layers.{s}.blocks.{i}."
TRANSFORMERS_ENTRIES = (
    Entry("swin.embeddings.patch_embeddings.projection.weight", "patches.projection.weight", KERNEL),
    Entry("swin.embeddings.patch_embeddings.projection.bias", "patches.projection.bias"),
    Entry("swin.embeddings.norm.{p}", "norm.{p}"),
    # What is saved is of the older names, which every version reads.
    Entry(STORED + "attention.self.query.{p}", HEADS + "to_q.{p}"),
    Entry(STORED + "attention.self.key.{p}", HEADS + "to_k.{p}"),
    Entry(STORED + "attention.self.value.{p}", HEADS + "to_v.{p}"),
    Entry(STORED + "attention.self.relative_position_bias_table", TABLE),
    Entry(STORED + "attention.output.dense.{p}", HEADS + "to_out.{p}"),
    Entry(STORED + "intermediate.dense.{p}", LAYER + "mlp.inner.expand.{p}"),
    Entry(STORED + "output.dense.{p}", LAYER + "mlp.inner.contract.{p}"),
    Entry(STORED + "attention.q_proj.{p}", HEADS + "to_q.{p}"),
    Entry(STORED + "attention.k_proj.{p}", HEADS + "to_k.{p}"),
    Entry(STORED + "attention.v_proj.{p}", HEADS + "to_v.{p}"),
    Entry(STORED + "attention.relative_position_bias.relative_position_bias_table", TABLE),
    Entry(STORED + "attention.o_proj.{p}", HEADS + "to_out.{p}"),
    Entry(STORED + "mlp.fc1.{p}", LAYER + "mlp.inner.expand.{p}"),
    Entry(STORED + "mlp.fc2.{p}", LAYER + "mlp.inner.contract.{p}"),
    Entry(STORED + "layernorm_before.{p}", LAYER + "attention.norm.{p}"),
    Entry(STORED + "layernorm_after.{p}", LAYER + "mlp.norm.{p}"),
    Entry("swin.layernorm.{p}", "last_norm.{p}"),
    Entry("classifier.{p}", "head.{p}"),
)

BLOCK = "layers.{s}.blocks.{i}."
PUBLISHED_ENTRIES = (
    Entry("patch_embed.proj.weight", "patches.projection.weight", KERNEL),
    Entry("patch_embed.proj.bias", "patches.projection.bias"),
    Entry("patch_embed.norm.{p}", "norm.{p}"),
    Entry(BLOCK + "attn.qkv.{p}", (HEADS + "to_q.{p}", HEADS + "to_k.{p}", HEADS + "to_v.{p}")),
    Entry(BLOCK + "attn.relative_position_bias_table", TABLE),
    Entry(BLOCK + "attn.proj.{p}", HEADS + "to_out.{p}"),
    Entry(BLOCK + "norm1.{p}", LAYER + "attention.norm.{p}"),
    Entry(BLOCK + "norm2.{p}", LAYER + "mlp.norm.{p}"),
    Entry(BLOCK + "mlp.fc1.{p}", LAYER + "mlp.inner.expand.{p}"),
    Entry(BLOCK + "mlp.fc2.{p}", LAYER + "mlp.inner.contract.{p}"),
    Entry("norm.{p}", "last_norm.{p}"),
)
BUFFERS = (BLOCK + "attn_mask", BLOCK + "attn.relative_position_index")


def merging_at_the_end(before: str, arguments: Arguments) -> tuple[Entry, ...]:
    """Tokens merge at the end of a stage there and at the beginning of the next here."""
    return tuple(
        Entry(f"{before}{stage}.downsample.{part}.{{p}}", f"stages.{stage + 1}.merging.{part}.{{p}}")
        for stage in range(len(arguments["depths"]) - 1)
        for part in ("norm", "reduction")
    )


def _shape_arguments(shapes: Shapes, patches: str, block: str, table: str, hidden: str) -> dict[str, Any]:
    """What the shapes alone tell; `block` is the template of a layer's names."""
    dim, in_channels, patch_size, _ = shapes[patches]
    num_stages = depth_of(shapes, block.format(s="{i}", i=0))
    depths = tuple(depth_of(shapes, block.format(s=stage, i="{i}")) for stage in range(num_stages))
    tables = [shapes[(block + table).format(s=stage, i=0)] for stage in range(num_stages)]
    if len({rows for rows, _ in tables}) > 1:
        raise MiradaError(
            "the checkpoint's later stages have smaller windows than its first, as its images were small: "
            "system 'swin' has tables of one size in all of them"
        )
    return {
        "in_channels": in_channels,
        "dim": dim,
        "depths": depths,
        "num_heads": tuple(heads for _, heads in tables),
        "mlp_ratio": ratio_of(shapes[(block + hidden).format(s=0, i=0)][0], dim),
        "patch_size": patch_size,
        "window_size": (isqrt(tables[0][0]) + 1) // 2,
    }


def _image_size(stated: Any, arguments: Mapping[str, Any]) -> Size:
    """As stated, else the one whose last grid is one window, as of every published size."""
    if stated is not None:
        return as_size(stated) if isinstance(stated, int) else (stated[-2], stated[-1])
    side = arguments["window_size"] * arguments["patch_size"] * 2 ** (len(arguments["depths"]) - 1)
    return side, side


def _transformers_arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    for name, usual in (("hidden_act", "gelu"), ("layer_norm_eps", EPS), ("qkv_bias", True)):
        if config.get(name, usual) != usual:
            raise MiradaError(f"the checkpoint has {name}={config[name]!r}, but system 'swin' has {usual!r} only")
    is_old = STORED.format(s=0, i=0) + "attention.self.query.weight" in shapes
    table = "attention.self." if is_old else "attention.relative_position_bias."
    arguments = _shape_arguments(
        shapes,
        "swin.embeddings.patch_embeddings.projection.weight",
        STORED,
        table + "relative_position_bias_table",
        "intermediate.dense.bias" if is_old else "mlp.fc1.bias",
    )
    return {
        **arguments,
        "image_size": _image_size(config.get("image_size"), arguments),
        "num_classes": shapes.get("classifier.weight", (1,))[0],
        "fitting": "published",
    }


def _transformers_config(arguments: Arguments) -> dict[str, Any]:
    _must_mean_the_same(arguments)
    size = as_size(arguments["image_size"])
    return {
        "architectures": ["SwinForImageClassification"],
        "model_type": "swin",
        "image_size": size[0] if size[0] == size[1] else list(size),
        "patch_size": arguments["patch_size"] or first_stride(size),
        "num_channels": arguments["in_channels"],
        "embed_dim": arguments["dim"],
        "depths": list(arguments["depths"]),
        "num_heads": list(arguments["num_heads"]),
        "window_size": arguments["window_size"],
        "mlp_ratio": arguments["mlp_ratio"],
        "qkv_bias": True,
        "hidden_act": "gelu",
        "hidden_dropout_prob": arguments["dropout"],
        "attention_probs_dropout_prob": 0.0,
        "drop_path_rate": arguments["drop_path"],
        "layer_norm_eps": EPS,
        "use_absolute_embeddings": False,
    }


def _must_mean_the_same(arguments: Arguments) -> None:
    """At this image size, that is: on grids that windows do not fill, transformers looks at the padding."""
    size, extent = as_size(arguments["image_size"]), arguments["window_size"]
    side = arguments["patch_size"] or first_stride(size)
    for stage in range(len(arguments["depths"])):
        grid = -(-size[0] // (side * 2**stage)), -(-size[1] // (side * 2**stage))
        if min(grid) < extent:
            raise MiradaError(
                f"stage {stage + 1} has {grid[0]} × {grid[1]} tokens, fewer than a window of {extent}, which the swin "
                f"of transformers does not take: train with a smaller window_size, or export as safetensors"
            )
        shifted = Windows((extent, extent), 2 * (extent // 2,))
        if arguments["fitting"] == "masked" and masked(shifted, grid) != published(shifted, grid):
            raise MiradaError(
                f"windows of {extent} do not fill the {grid[0]} × {grid[1]} tokens of stage {stage + 1}, where the "
                f"swin of transformers looks at padding: train with system.arguments.fitting=published, or export as "
                f"safetensors"
            )


def _published_arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    said = {**config.get("pretrained_cfg", {}), **config.get("model_args", {})}
    arguments = _shape_arguments(
        shapes, "patch_embed.proj.weight", BLOCK, "attn.relative_position_bias_table", "mlp.fc1.bias"
    )
    heads = [shapes[name][0] for name in ("head.fc.weight", "head.weight") if name in shapes]
    return {
        **arguments,
        "image_size": _image_size(said.get("img_size", said.get("input_size")), arguments),
        "num_classes": heads[0] if heads else 1,
        "fitting": "masked",
    }


def _is_transformers(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    names = {name.removeprefix("swin.") for name in names}
    first = "encoder.layers.0.blocks.0.attention."
    tables = {first + "self.relative_position_bias_table"}
    tables |= {first + "relative_position_bias.relative_position_bias_table"}
    return config.get("model_type", "swin") == "swin" and bool(tables & names)


def _is_published(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return {"patch_embed.proj.weight", "layers.0.blocks.0.attn.relative_position_bias_table"} <= set(names)


def _merges_at_the_end(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    names = set(names)
    return _is_published(config, names) and "layers.0.downsample.reduction.weight" in names


LAYOUTS = (
    Layout(
        system="swin",
        origin="transformers",
        entries=lambda arguments: (
            *TRANSFORMERS_ENTRIES,
            *merging_at_the_end("swin.encoder.layers.", arguments),
        ),
        recognises=_is_transformers,
        arguments=_transformers_arguments,
        config=_transformers_config,
        prefix="swin.",
        ignored=(
            STORED + "attention.self.relative_position_index",
            STORED + "attention.relative_position_bias.relative_position_index",
            "swin.embeddings.mask_token",
            "decoder.0.{p}",
        ),
    ),
    Layout(
        system="swin",
        origin="microsoft",
        entries=lambda arguments: (
            *PUBLISHED_ENTRIES,
            Entry("head.{p}", "head.{p}"),
            *merging_at_the_end("layers.", arguments),
        ),
        recognises=_merges_at_the_end,
        arguments=_published_arguments,
        ignored=BUFFERS,
    ),
    Layout(
        system="swin",
        origin="timm",
        entries=(
            *PUBLISHED_ENTRIES,
            Entry("layers.{s}.downsample.norm.{p}", "stages.{s}.merging.norm.{p}"),
            Entry("layers.{s}.downsample.reduction.{p}", "stages.{s}.merging.reduction.{p}"),
            Entry("head.fc.{p}", "head.{p}"),
        ),
        recognises=_is_published,
        arguments=_published_arguments,
        ignored=BUFFERS,
    ),
)
