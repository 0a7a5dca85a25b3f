"""BERT as transformers names it, with the gamma and beta that its oldest files say for the weight and bias of norms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mirada.weights.layout import Arguments, Entry, Layout, Shapes
from mirada.weights.shapes import depth_of, num_heads_of, ratio_of, require_only

EMBEDDINGS, BLOCK = "bert.embeddings.", "bert.encoder.layer.{i}."
LAYER = "encoder.layers.{i}."
HEADS = LAYER + "attention.inner.heads."
FILL = "cls.predictions."

# What config.json may say of variants that the published models are not.
ONLY = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def _norm(theirs: str, ours: str) -> tuple[Entry, ...]:
    return (
        Entry(theirs + ".weight", ours + ".weight"),
        Entry(theirs + ".bias", ours + ".bias"),
        Entry(theirs + ".gamma", ours + ".weight"),
        Entry(theirs + ".beta", ours + ".bias"),
    )


ENTRIES = (
    Entry(EMBEDDINGS + "word_embeddings.weight", "embedding.weight"),
    Entry(EMBEDDINGS + "position_embeddings.weight", "position.weight"),
    Entry(EMBEDDINGS + "token_type_embeddings.weight", "segment.weight"),
    *_norm(EMBEDDINGS + "LayerNorm", "norm"),
    Entry(BLOCK + "attention.self.query.{p}", HEADS + "to_q.{p}"),
    Entry(BLOCK + "attention.self.key.{p}", HEADS + "to_k.{p}"),
    Entry(BLOCK + "attention.self.value.{p}", HEADS + "to_v.{p}"),
    Entry(BLOCK + "attention.output.dense.{p}", HEADS + "to_out.{p}"),
    *_norm(BLOCK + "attention.output.LayerNorm", LAYER + "attention.norm"),
    Entry(BLOCK + "intermediate.dense.{p}", LAYER + "mlp.inner.expand.{p}"),
    Entry(BLOCK + "output.dense.{p}", LAYER + "mlp.inner.contract.{p}"),
    *_norm(BLOCK + "output.LayerNorm", LAYER + "mlp.norm"),
    Entry("bert.pooler.dense.{p}", "pooler.{p}"),
    Entry("classifier.{p}", "head.{p}"),
    Entry(FILL + "transform.dense.{p}", "fill.dense.{p}"),
    *_norm(FILL + "transform.LayerNorm", "fill.norm"),
    Entry(FILL + "bias", "fill.bias"),
)


def _arguments(config: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    require_only(config, ONLY)
    num_tokens, dim = shapes[EMBEDDINGS + "word_embeddings.weight"]
    depth = depth_of(shapes, BLOCK)
    return {
        "num_tokens": num_tokens,
        "pad": config.get("pad_token_id") or 0,
        "num_classes": shapes["classifier.weight"][0] if "classifier.weight" in shapes else None,
        "dim": dim,
        "depth": depth,
        "num_heads": num_heads_of(config.get("num_attention_heads"), "bert", dim, depth),
        "mlp_ratio": ratio_of(shapes["bert.encoder.layer.0.intermediate.dense.bias"][0], dim),
        "max_length": shapes[EMBEDDINGS + "position_embeddings.weight"][0],
        "num_segments": shapes[EMBEDDINGS + "token_type_embeddings.weight"][0],
        "norm_eps": config.get("layer_norm_eps", 1e-12),
    }


def _config(arguments: Arguments) -> dict[str, Any]:
    is_classifier = arguments["num_classes"] is not None
    return {
        "architectures": ["BertForSequenceClassification" if is_classifier else "BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": arguments["num_tokens"],
        "pad_token_id": arguments["pad"],
        "max_position_embeddings": arguments["max_length"],
        "type_vocab_size": arguments["num_segments"],
        "hidden_size": arguments["dim"],
        "num_hidden_layers": arguments["depth"],
        "num_attention_heads": arguments["num_heads"],
        "intermediate_size": int(arguments["dim"] * arguments["mlp_ratio"]),
        "hidden_dropout_prob": arguments["dropout"],
        "attention_probs_dropout_prob": arguments["dropout"],
        "layer_norm_eps": arguments["norm_eps"],
        **ONLY,
    }


def _is_bert(config: Mapping[str, Any], names: Iterable[str]) -> bool:
    named = {name.removeprefix("bert.") for name in names}
    wanted = {"embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight"}
    return wanted <= named and config.get("model_type", "bert") == "bert"


LAYOUTS = (
    Layout(
        system="bert",
        origin="transformers",
        entries=ENTRIES,
        recognises=_is_bert,
        arguments=_arguments,
        config=_config,
        prefix="bert.",
        # The output matrix and bias are the embedding and FILL + "bias" a second time; which of two sentences follows
        # the other is a task that we do not have.
        ignored=(
            EMBEDDINGS + "position_ids",
            FILL + "decoder.{p}",
            "cls.seq_relationship.{p}",
        ),
    ),
)
