"""Held-out sentences with their translations, and what was looked at while writing them.

Shape letters: H heads, N tokens of a translation, M tokens of a source.
"""

from __future__ import annotations

import numpy as np
import torch

from mirada.core import attention_layers, record
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, shuffled_rows
from mirada.report.matrices import MAX_TOKENS, head_grid, matrix
from mirada.report.style import Drawing
from mirada.report.texts import cut, target_tokeniser_of, tokeniser_of
from mirada.report.wording import decimal, metric_value, percent
from mirada.tasks.bleu import require_sacrebleu
from mirada.tasks.translation import Alignment, Translator
from mirada.train.checkpoint import load_model

NUM_EXAMPLES = 10
NUM_EXTREMES = 5


def translate_section(run: Contents) -> dict:
    """Tables of translations and alignments, or the sentences that say why there are none."""
    section: dict = {"numbers": numbers(run.result or {}), "examples": [], "worst": [], "best": [], "unended": 0}
    section |= {"alignments": [], "heads": None, "missing": None, "no_scores": None, "no_attention": None}
    if not run.predictions:
        reason = "There are no translations of held-out sentences in this run."
        return section | {"missing": reason, "no_attention": reason}
    section["unended"] = sum(row.get("is_finished") == "False" for row in run.predictions)
    drawn = shuffled_rows(run)
    try:
        score = sentence_scores(run.predictions)
        section["worst"], section["best"] = extremes(run.predictions, score)
        section["examples"] = [_told(row, score[row["row"]]) for row in drawn[:NUM_EXAMPLES]]
    except MiradaError as error:
        section["no_scores"] = f"Single sentences have no scores here: {error}"
        section["examples"] = [_told(row, None) for row in drawn[:NUM_EXAMPLES]]
    try:
        section["alignments"], section["heads"] = alignments(run, drawn)
    except MiradaError as error:
        section["no_attention"] = f"No alignment is shown: {str(error).rstrip('.')}."
    return section


def numbers(result: dict) -> list[tuple[str, str]]:
    told = [
        (name, f"{metric_value(key, result[key])} ({result[f'{key}_low']:.1f}–{result[f'{key}_high']:.1f})")
        for key, name in (("bleu", "BLEU"), ("chrf", "chrF"))
        if f"{key}_low" in result
    ]
    told += [("Perplexity", metric_value("perplexity", result["perplexity"]))] if "perplexity" in result else []
    told += [("Tokens right", percent(result["token_accuracy"]))] if "token_accuracy" in result else []
    return told


def sentence_scores(rows: list[Row]) -> dict[str, float]:
    """chrF of every sentence against its first reference, by the number of its row."""
    metric = require_sacrebleu().metrics.CHRF()
    return {row["row"]: metric.sentence_score(row["predicted"], [row["target"]]).score for row in rows}


def extremes(rows: list[Row], score: dict[str, float]) -> tuple[list[dict], list[dict]]:
    """The worst and the best translations; of equally good ones the longest, which are the hardest."""
    order = sorted(rows, key=lambda row: (score[row["row"]], len(row["target"])))
    number = min(NUM_EXTREMES, len(rows) // 2)
    worst, best = order[:number], order[::-1][:number]
    return [_told(row, score[row["row"]]) for row in worst], [_told(row, score[row["row"]]) for row in best]


def alignments(run: Contents, rows: list[Row]) -> tuple[list[Drawing], Drawing | None]:
    """Of the first sentences that are short enough; and the heads of the last layer for one of them."""
    translator = Translator(
        load_model(run.folder.best), tokeniser_of(run), target_tokeniser_of(run), torch.device("cpu")
    )
    shown: list[tuple[Row, Alignment]] = []
    for row in rows:
        if len(shown) == NUM_EXAMPLES:
            break
        lengths = [len(t.encode(row[side].strip())) for t, side in _sides(translator)]
        if all(0 < length < MAX_TOKENS for length in lengths):
            shown.append((row, translator.alignment(row["source"], row["predicted"])))
    if not shown:
        raise MiradaError(f"every held-out sentence, or its translation, is empty or has {MAX_TOKENS} tokens or more")
    drawings = [
        matrix(f"alignment-{n}", row["predicted"], found.weights_NM.numpy(), found.target, found.source)
        for n, (row, found) in enumerate(shown, start=1)
    ]
    return drawings, _heads(translator, *max(shown[:3], key=lambda pair: len(pair[1].target)))


@torch.inference_mode()
def _heads(translator: Translator, row: Row, found: Alignment) -> Drawing | None:
    """None where there is one head only."""
    names = [name for name in attention_layers(translator.model) if ".cross." in name]
    if not names:
        return None
    source, target = (t.encode(row[side].strip()) for t, side in _sides(translator))
    with record(translator.model, layers=names[-1:]) as maps:
        translator.model(translator.read([source]), torch.tensor([[translator.target.start, *target]]))
    weights_HNM: np.ndarray = maps[names[-1]][0].numpy()
    if len(weights_HNM) == 1:
        return None
    title = f"Heads of the last layer while writing “{row['predicted']}”"
    return head_grid("alignment-heads", title, weights_HNM, found.target, found.source)


def _sides(translator: Translator):
    return (translator.source, "source"), (translator.target, "predicted")


def _told(row: Row, score: float | None) -> dict:
    others = int(row.get("num_references") or 1) - 1
    return {
        **{side: cut(row[side]) for side in ("source", "target", "predicted")},
        "others": others,
        "score": "–" if score is None else f"{score:.1f}",
        "log_probability": decimal(float(row["score"])) if row.get("score") else "–",
        "is_ended": row.get("is_finished") != "False",
    }
