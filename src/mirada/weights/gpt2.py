"""GPT-2 as transformers names it; files of the model without its head have no "transformer." before the names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.weights.layout import TRANSPOSED, Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, num_heads_of, ratio_of, require_only
from mirada.weights.vit import require_plain

BLOCK, LAYER = "transformer.h.{i}.", "encoder.layers.{i}."
HEADS = LAYER + "attention.inner.heads."
QKV = (HEADS + "to_q", HEADS + "to_k", HEADS + "to_v")
TANH_GELU = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")  # three names of one function

# What config.json may say of variants that the published models are not.
ONLY = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    require_only(config, ONLY)
    if config.get("activation_function", TANH_GELU[0]) not in TANH_GELU:
        raise MiradaError(
            f"the checkpoint's config.json says activation_function={config['activation_function']!r}: "
            f"only {', '.join(TANH_GELU)} are known here"
        )
    num_tokens, dim = shapes["transformer.wte.weight"]
    depth = depth_of(shapes, BLOCK)
    return {
        "num_tokens": num_tokens,
        "pad": _pad(config, num_tokens),
        "num_classes": shapes["score.weight"][0] if "score.weight" in shapes else None,
        "dim": dim,
        "depth": depth,
        "num_heads": num_heads_of(config.get("n_head"), "gpt", dim, depth),
        "mlp_ratio": ratio_of(shapes["transformer.h.0.mlp.c_fc.weight"][1], dim),
        "max_length": shapes["transformer.wpe.weight"][0],
        "position": "learned",
        "norm_eps": config.get("layer_norm_epsilon", 1e-5),
    }


def _pad(config: Mapping[str, Any], num_tokens: int) -> int:
    """GPT-2 was trained without padding: the token that ends a text serves for it, as is usual."""
    said = [config.get(name) for name in ("pad_token_id", "eos_token_id")]
    return next((token for token in said if isinstance(token, int) and 0 <= token < num_tokens), num_tokens - 1)


def _config(arguments: Arguments) -> dict[str, Any]:
    require_plain("gpt", arguments, {"position": "learned"})
    is_classifier = arguments["num_classes"] is not None
    dropout = arguments["dropout"]
    return {
        "architectures": ["GPT2ForSequenceClassification" if is_classifier else "GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": arguments["num_tokens"],
        "pad_token_id": arguments["pad"],
        "bos_token_id": None,
        "eos_token_id": None,
        "n_positions": arguments["max_length"],
        "n_embd": arguments["dim"],
        "n_layer": arguments["depth"],
        "n_head": arguments["num_heads"],
        "n_inner": int(arguments["dim"] * arguments["mlp_ratio"]),
        "layer_norm_epsilon": arguments["norm_eps"],
        "activation_function": TANH_GELU[0],
        "resid_pdrop": dropout,
        "embd_pdrop": dropout,
        "attn_pdrop": dropout,
        **ONLY,
    }


def _is_gpt2(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    named = {name.removeprefix("transformer.") for name in names}
    # Image GPT has the same names, without the biases of the norms.
    is_it = {"wte.weight", "wpe.weight", "h.0.attn.c_attn.weight", "ln_f.bias"} <= named
    return is_it and config.get("model_type", "gpt2") == "gpt2"


def encoder_entries(of_norm: str) -> tuple[Entry, ...]:
    """What GPT-2 and Image GPT share; norms have weight and bias ("{p}"), or the "weight" alone."""
    return (
        Entry("transformer.wte.weight", "embedding.weight"),
        Entry("transformer.wpe.weight", "position.weight"),
        Entry(BLOCK + f"ln_1.{of_norm}", LAYER + f"attention.norm.{of_norm}"),
        Entry(BLOCK + "attn.c_attn.weight", tuple(f"{part}.weight" for part in QKV), TRANSPOSED),
        Entry(BLOCK + "attn.c_attn.bias", tuple(f"{part}.bias" for part in QKV)),
        Entry(BLOCK + "attn.c_proj.weight", HEADS + "to_out.weight", TRANSPOSED),
        Entry(BLOCK + "attn.c_proj.bias", HEADS + "to_out.bias"),
        Entry(BLOCK + f"ln_2.{of_norm}", LAYER + f"mlp.norm.{of_norm}"),
        Entry(BLOCK + "mlp.c_fc.weight", LAYER + "mlp.inner.expand.weight", TRANSPOSED),
        Entry(BLOCK + "mlp.c_fc.bias", LAYER + "mlp.inner.expand.bias"),
        Entry(BLOCK + "mlp.c_proj.weight", LAYER + "mlp.inner.contract.weight", TRANSPOSED),
        Entry(BLOCK + "mlp.c_proj.bias", LAYER + "mlp.inner.contract.bias"),
        Entry(f"transformer.ln_f.{of_norm}", f"encoder.norm.{of_norm}"),
    )


LAYOUTS = (
    Layout(
        system="gpt",
        origin="transformers",
        entries=(
            *encoder_entries("{p}"),
            Entry("score.weight", "head.weight"),
        ),
        recognises=_is_gpt2,
        arguments=_arguments,
        config=_config,
        prefix="transformer.",
        # Masks that old files hold, and the embedding a second time.
        ignored=(BLOCK + "attn.bias", BLOCK + "attn.masked_bias", "lm_head.weight"),
    ),
)
