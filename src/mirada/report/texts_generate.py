"""What a language model writes by itself, and the held-out passages that surprise it most and least."""

from __future__ import annotations

import math

from torch import Tensor

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, shuffled_rows
from mirada.report.matrices import MAX_TOKENS, head_grid, last_layer, matrix
from mirada.report.style import Drawing
from mirada.report.texts import cut, tokeniser_of
from mirada.report.wording import decimal, metric_value, percent
from mirada.train.checkpoint import load_model

NUM_PASSAGES = 5


def generate_section(run: Contents) -> dict:
    """Texts and pictures, or the sentences that say why there are none."""
    result = run.result or {}
    section: dict = {"numbers": numbers(result), "samples": [text.strip("\n") for text in result.get("samples", [])]}
    section |= {"surprising": [], "expected": [], "missing": None, "attention": [], "no_attention": None}
    if not run.predictions:
        reason = "There are no held-out passages in this run."
        return section | {"missing": reason, "no_attention": reason}
    order = sorted(run.predictions, key=lambda row: -float(row["nats_per_token"]))
    number = min(NUM_PASSAGES, len(order) // 2) or 1
    section["surprising"] = [_told(row) for row in order[:number]]
    section["expected"] = [_told(row) for row in order[::-1][:number]]
    try:
        section["attention"] = passage_attention(run, shuffled_rows(run)[0]["text"])
    except MiradaError as error:
        section["no_attention"] = f"No attention is shown: {str(error).rstrip('.')}."
    return section


def numbers(result: dict) -> list[tuple[str, str]]:
    bits = result.get("bits_per_character")
    return [
        *([("Perplexity", metric_value("perplexity", result["value"]))] if "value" in result else []),
        *([("Bits per character", decimal(bits))] if bits is not None else []),
        *([("Tokens right", percent(result["token_accuracy"]))] if "token_accuracy" in result else []),
    ]


def passage_attention(run: Contents, text: str) -> list[Drawing]:
    """The last layer on the beginning of a passage: the mean of its heads, then each of them."""
    tokeniser = tokeniser_of(run)
    tokens = tokeniser.encode(text)[: min(MAX_TOKENS, run.data["max_length"])]
    if not tokens:
        raise MiradaError("the passage is empty")
    weights_HNM = last_layer(load_model(run.folder.best), tokens, run.system)
    return attention_drawings(weights_HNM, tokeniser.tokens(tokens))


def attention_drawings(weights_HNM: Tensor, names: list[str]) -> list[Drawing]:
    mean_NM = weights_HNM.mean(0).numpy()
    if len(weights_HNM) == 1:
        return [matrix("attention", "The last layer, which has one head", mean_NM, names, names, 6.4)]
    return [
        matrix("attention", "Mean over the heads of the last layer", mean_NM, names, names, 6.4),
        head_grid("attention-heads", "Attention in the last layer", weights_HNM.numpy(), names, names),
    ]


def _told(row: Row) -> dict:
    perplexity = math.exp(min(float(row["nats_per_token"]), 700.0))
    return {"name": row["name"], "text": cut(row["text"]), "perplexity": metric_value("perplexity", perplexity)}
