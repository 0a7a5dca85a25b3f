"""Image GPT as transformers names it. Its palette stands in another file there (`clusters` of the image processor)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.weights.gpt2 import BLOCK, encoder_entries
from mirada.weights.layout import Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, image_size_of, num_heads_of, ratio_of, require_only

PALETTE_CHANNELS = 3

# What config.json may say of variants that the published models are not.
ONLY = {
    "activation_function": "quick_gelu",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": False,
}


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    require_only(config, ONLY)
    num_tokens, dim = shapes["transformer.wte.weight"]
    depth = depth_of(shapes, BLOCK)
    return {
        "image_size": image_size_of(config.get("image_size"), 1, shapes["transformer.wpe.weight"][0]),
        "in_channels": PALETTE_CHANNELS,
        "num_colours": num_tokens - 1,
        "dim": dim,
        "depth": depth,
        "num_heads": num_heads_of(config.get("n_head"), "image_gpt", dim, depth),
        "mlp_ratio": ratio_of(shapes["transformer.h.0.mlp.c_fc.weight"][1], dim),
    }


def _config(arguments: Arguments) -> dict[str, Any]:
    if arguments["in_channels"] != PALETTE_CHANNELS:
        raise MiradaError(f"images of {arguments['in_channels']} channels: the palette of transformers has three")
    height, width = arguments["image_size"]
    dropout = arguments["dropout"]
    return {
        "architectures": ["ImageGPTForCausalImageModeling"],
        "model_type": "imagegpt",
        "image_size": [height, width],
        "n_positions": height * width,
        "vocab_size": arguments["num_colours"] + 1,
        "n_embd": arguments["dim"],
        "n_layer": arguments["depth"],
        "n_head": arguments["num_heads"],
        "n_inner": int(arguments["dim"] * arguments["mlp_ratio"]),
        "resid_pdrop": dropout,
        "embd_pdrop": dropout,
        "attn_pdrop": 0.0,
        **ONLY,
    }


def _is_image_gpt(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    named = {name.removeprefix("transformer.") for name in names}
    # GPT-2 has the same names but for the biases of its norms.
    is_it = {"wte.weight", "wpe.weight", "h.0.attn.c_attn.weight"} <= named and "ln_f.bias" not in named
    return is_it and config.get("model_type", "imagegpt") == "imagegpt"


LAYOUTS = (
    Layout(
        system="image_gpt",
        origin="transformers",
        entries=(
            *encoder_entries("weight"),
            Entry("lm_head.weight", "to_colour.weight"),
            # Not a name of theirs: the palette goes beside the weights, and comes back with them.
            Entry("palette", "palette_TC"),
            Entry("transformer.palette", "palette_TC"),
        ),
        recognises=_is_image_gpt,
        arguments=_arguments,
        config=_config,
        prefix="transformer.",
        ignored=(BLOCK + "attn.bias", BLOCK + "attn.masked_bias", "score.weight"),
    ),
)
