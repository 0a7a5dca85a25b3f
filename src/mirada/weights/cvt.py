"""CvT as transformers names it; timm has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.nn.patches import as_size
from mirada.systems.cvt import first_stride
from mirada.weights.layout import TOKENS, Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import USUAL_HEAD_DIM, depth_of, ratio_of

USUAL_SIDE = 224
STAGE, OUR_STAGE = "cvt.encoder.stages.{s}.", "stages.{s}."
LAYER, OUR_LAYER = STAGE + "layers.{i}.", OUR_STAGE + "encoder.layers.{i}."
ATTENTION, OUR_ATTENTION = LAYER + "attention.attention.", OUR_LAYER + "attention.inner."


def _projection(theirs: str, ours: str) -> tuple[Entry, ...]:
    around = ATTENTION + f"convolution_projection_{theirs}.convolution_projection."
    return (
        Entry(around + "convolution.{p}", OUR_ATTENTION + f"around_{ours}.convolution.{{p}}"),
        Entry(around + "normalization.{p}", OUR_ATTENTION + f"around_{ours}.norm.{{p}}"),
        Entry(ATTENTION + f"projection_{theirs}.{{p}}", OUR_ATTENTION + f"heads.to_{ours}.{{p}}"),
    )


ENTRIES = (
    Entry(STAGE + "cls_token", OUR_STAGE + "extra.weight", TOKENS),
    Entry(STAGE + "embedding.convolution_embeddings.projection.{p}", OUR_STAGE + "embedding.projection.{p}"),
    Entry(STAGE + "embedding.convolution_embeddings.normalization.{p}", OUR_STAGE + "embedding.norm.{p}"),
    *_projection("query", "q"),
    *_projection("key", "k"),
    *_projection("value", "v"),
    Entry(LAYER + "attention.output.dense.{p}", OUR_ATTENTION + "heads.to_out.{p}"),
    Entry(LAYER + "layernorm_before.{p}", OUR_LAYER + "attention.norm.{p}"),
    Entry(LAYER + "layernorm_after.{p}", OUR_LAYER + "mlp.norm.{p}"),
    Entry(LAYER + "intermediate.dense.{p}", OUR_LAYER + "mlp.inner.expand.{p}"),
    Entry(LAYER + "output.dense.{p}", OUR_LAYER + "mlp.inner.contract.{p}"),
    Entry("layernorm.{p}", "norm.{p}"),
    Entry("classifier.{p}", "head.{p}"),
)


def _published(num_stages: int, patch_size: int) -> dict[str, list]:
    """What every published CvT has, stage by stage, in the words of transformers."""
    further = num_stages - 1
    return {
        "patch_sizes": [2 * patch_size - 1, *[3] * further],
        "patch_stride": [patch_size, *[2] * further],
        "patch_padding": [patch_size // 2, *[1] * further],
        "qkv_bias": [True] * num_stages,
        "cls_token": [*[False] * further, True],
        "qkv_projection_method": ["dw_bn"] * num_stages,
        "kernel_qkv": [3] * num_stages,
        "padding_kv": [1] * num_stages,
        "stride_kv": [2] * num_stages,
        "padding_q": [1] * num_stages,
        "stride_q": [1] * num_stages,
    }


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    stages = range(depth_of(shapes, "cvt.encoder.stages.{i}."))
    kernels = [shapes[f"cvt.encoder.stages.{s}.embedding.convolution_embeddings.projection.weight"] for s in stages]
    dims = tuple(kernel[0] for kernel in kernels)
    patch_size = (kernels[0][-1] + 1) // 2
    for name, published in _published(len(dims), patch_size).items():
        if list(config.get(name, published)) != published:
            raise MiradaError(f"the checkpoint has {name}={config[name]}, but system 'cvt' has {published} only")
    hidden = [shapes[f"cvt.encoder.stages.{s}.layers.0.intermediate.dense.bias"][0] for s in stages]
    ratios = {ratio_of(wide, dim) for wide, dim in zip(hidden, dims, strict=True)}
    if len(ratios) > 1:
        raise MiradaError(f"the checkpoint's stages have mlp_ratio {sorted(ratios)}, but system 'cvt' has one for all")
    return {
        "image_size": as_size(USUAL_SIDE),
        "in_channels": kernels[0][1],
        "num_classes": shapes.get("classifier.weight", (1,))[0],
        "dims": dims,
        "depths": tuple(depth_of(shapes, f"cvt.encoder.stages.{s}.layers.{{i}}.") for s in stages),
        "num_heads": tuple(config.get("num_heads", [dim // USUAL_HEAD_DIM for dim in dims])),
        "mlp_ratio": ratios.pop(),
        "patch_size": patch_size,
    }


def _config(arguments: Arguments) -> dict[str, Any]:
    size = as_size(arguments["image_size"])
    patch_size = arguments["patch_size"] or first_stride(size)
    depths = list(arguments["depths"])
    num_stages = len(depths)
    if any(depth <= stage for stage, depth in enumerate(depths)):
        raise MiradaError(
            f"depths={depths}: transformers cannot build a CvT whose stage s, counted from 0, has no more than s layers"
        )
    if size[0] % patch_size or size[1] % patch_size:
        raise MiradaError(
            f"images of {size[0]} × {size[1]} pixels are no whole number of strides of {patch_size}, which "
            f"transformers handles otherwise: train at another data.image_size to export in its layout"
        )
    return {
        "architectures": ["CvtForImageClassification"],
        "model_type": "cvt",
        "num_channels": arguments["in_channels"],
        "embed_dim": list(arguments["dims"]),
        "depth": depths,
        "num_heads": list(arguments["num_heads"]),
        "mlp_ratio": [arguments["mlp_ratio"]] * num_stages,
        "drop_rate": [arguments["dropout"]] * num_stages,
        "attention_drop_rate": [0.0] * num_stages,
        # Transformers takes one rate for all layers of a stage; none is what it has in evaluation.
        "drop_path_rate": [0.0] * num_stages,
        **_published(num_stages, patch_size),
    }


def _is_cvt(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    first = "encoder.stages.0.embedding.convolution_embeddings.projection.weight"
    return config.get("model_type", "cvt") == "cvt" and first in {name.removeprefix("cvt.") for name in names}


LAYOUTS = (
    Layout(
        system="cvt",
        origin="transformers",
        entries=ENTRIES,
        recognises=_is_cvt,
        arguments=_arguments,
        config=_config,
        prefix="cvt.",
    ),
)
