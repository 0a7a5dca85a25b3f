"""Marian's translators (OPUS-MT) as transformers names them: a Transformer with post-norm and one matrix of tokens.

Sentences end with `eos_token_id`; targets begin with `decoder_start_token_id`, which is the padding token. Positions
have all sines first and are computed, not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.errors import MiradaError
from mirada.weights.layout import TABLE, Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, ratio_of

TOKENS = "model.{side}.embed_tokens.weight"
PROJECTIONS = {"q_proj": "to_q", "k_proj": "to_k", "v_proj": "to_v", "out_proj": "to_out"}
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}

# What config.json may say of variants that the published models are not.
ONLY = {
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "tie_word_embeddings": True,
}


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    for name, known in ONLY.items():
        if config.get(name, known) != known:
            raise MiradaError(f"config.json says {name}={config[name]!r}: only {known!r} is known here")
    for one, other in (("encoder_ffn_dim", "decoder_ffn_dim"), ("encoder_attention_heads", "decoder_attention_heads")):
        if config[one] != config[other]:
            raise MiradaError(
                f"config.json says {one}={config[one]} and {other}={config[other]}: both sides must be alike"
            )
    activation = config["activation_function"]
    if activation not in ACTIVATIONS:
        raise MiradaError(
            f"config.json says activation_function={activation!r}: only {', '.join(ACTIVATIONS)} are known here"
        )
    is_shared = config.get("share_encoder_decoder_embeddings", True)
    dim = config["d_model"]
    return {
        "num_tokens": config["vocab_size"],
        "num_target_tokens": None if is_shared else config["decoder_vocab_size"],
        "pad": config["pad_token_id"],
        "dim": dim,
        "depth": depth_of(shapes, "model.encoder.layers.{i}."),
        "decoder_depth": depth_of(shapes, "model.decoder.layers.{i}."),
        "num_heads": config["encoder_attention_heads"],
        "mlp_ratio": ratio_of(config["encoder_ffn_dim"], dim),
        "norm": "post",
        "final_norm": False,
        "position": "sinusoidal_half",
        "max_length": config["max_position_embeddings"],
        "tie": "all" if is_shared else "output",
        "activation": ACTIVATIONS[activation],
        "embedding_scale": None if config.get("scale_embedding") else 1.0,
        "output_bias": True,
        "dropout": config["dropout"],
    }


def _layer(side: str, parts: Mapping[str, str]) -> list[Entry]:
    """Every tensor of a layer; `parts` are our names of its attentions by theirs."""
    theirs, ours = f"model.{side}.layers.{{i}}.", f"{side}.layers.{{i}}."
    entries = [
        Entry(theirs + "fc1.{p}", ours + "mlp.inner.expand.{p}"),
        Entry(theirs + "fc2.{p}", ours + "mlp.inner.contract.{p}"),
        Entry(theirs + "final_layer_norm.{p}", ours + "mlp.norm.{p}"),
    ]
    for part, our_part in parts.items():
        entries.append(Entry(f"{theirs}{part}_layer_norm.{{p}}", f"{ours}{our_part}.norm.{{p}}"))
        for projection, our_projection in PROJECTIONS.items():
            entries.append(
                Entry(f"{theirs}{part}.{projection}.{{p}}", f"{ours}{our_part}.inner.heads.{our_projection}.{{p}}")
            )
    return entries


def _entries(arguments: Arguments) -> tuple[Entry, ...]:
    source, target = TOKENS.format(side="encoder"), TOKENS.format(side="decoder")
    if arguments["tie"] == "all":
        # Old files hold the shared matrix under each of its names.
        names = ("model.shared.weight", source, target, "lm_head.weight")
        tokens = [Entry(name, "tokens.source.weight") for name in names]
    else:
        tokens = [
            Entry(source, "tokens.source.weight"),
            Entry(target, "tokens.own_target.weight"),
            Entry("lm_head.weight", "tokens.own_target.weight"),
        ]
    return (
        *tokens,
        Entry("final_logits_bias", "tokens.bias", TABLE),
        *_layer("encoder", {"self_attn": "attention"}),
        *_layer("decoder", {"self_attn": "attention", "encoder_attn": "cross"}),
    )


def _is_marian(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    return config.get("model_type") == "marian"


LAYOUTS = (
    Layout(
        system="transformer",
        origin="transformers",
        entries=_entries,
        recognises=_is_marian,
        arguments=_arguments,
        prefix="model.",
        ignored=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
    ),
)
