"""Held-out texts with their classes: the most confident mistakes, some drawn at random, and where the model looks.

a_w = Σ over the tokens of word w of the mean over heads of weights[:, classifying token, :]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.data.text.sources import open_text
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import Row, random_rows, worst_rows
from mirada.report.matrices import last_layer
from mirada.report.texts import cut, tokeniser_of
from mirada.report.wording import percent
from mirada.train.checkpoint import load_model

NUM_EXAMPLES, NUM_SHADED = 10, 6
MAX_WORDS = 80  # of a text whose words are shaded
NUM_LEADERS = 3  # words that are named
READING = ("source_column", "target_column", "text_column", "label_column", "split_column")
TextOf = Callable[[Row], str]


@dataclass(frozen=True)
class Word:
    """`share` of the attention, and `shade` of 0..1: how it compares with the word of the text that has most."""

    text: str
    share: str
    shade: float


def classify_section(run: Contents) -> dict:
    """Texts, or the sentences that say why there are none."""
    section: dict = {"mistakes": [], "examples": [], "shaded": [], "looks": "", "missing": None, "no_attention": None}
    if not run.predictions:
        reason = "There are no predictions of held-out texts in this run."
        return section | {"missing": reason, "no_attention": reason}
    drawn = random_rows(run)[:NUM_EXAMPLES]
    try:
        text_of = open_texts(run)
        section["mistakes"] = [_told(row, text_of) for row in worst_rows(run)]
        section["examples"] = [_told(row, text_of) for row in drawn]
    except MiradaError as error:
        reason = f"The held-out texts cannot be shown: {error}"
        return section | {"missing": reason, "no_attention": reason}
    try:
        section["shaded"], section["looks"] = shaded_texts(run, drawn[:NUM_SHADED], text_of)
    except MiradaError as error:
        section["no_attention"] = f"No attention is shown: {str(error).rstrip('.')}."
    return section


def open_texts(run: Contents) -> TextOf:
    """From a prediction to its text: its own column, else the data, which must be that of the run."""
    if "text" in run.predictions[0]:
        return lambda row: row["text"]
    settings = run.section("data")
    options = {name: settings[name] for name in READING if settings.get(name) is not None}
    table = open_text(run.data["source"], task="classify", **options)
    if table.checksum() != run.data["checksum"]:
        raise MiradaError(f"{run.data['source']}: changed since the run, so its texts are no longer those of this run.")
    return lambda row: table.texts[int(row["row"])]


def shaded_texts(run: Contents, rows: list[Row], text_of: TextOf) -> tuple[list[dict], str]:
    """The words of some texts with the attention that the classifying token gives them, and which token that is."""
    tokeniser, model = tokeniser_of(run), load_model(run.folder.best)
    shown, looks = [], ""
    for row in rows:
        tokens = tokeniser.encode(text_of(row))[: int(run.data["max_length"]) - 2]
        weight_N, looks = classifying(model, [tokeniser.start, *tokens, tokeniser.end], run.system)
        words, special = words_shaded(tokeniser, tokens, weight_N)
        shown.append({**_told(row, text_of), "words": words[:MAX_WORDS], "is_cut": len(words) > MAX_WORDS} | special)
    return shown, looks


def classifying(model: nn.Module, tokens: list[int], system: str) -> tuple[Tensor, str]:
    """(N,) where the token looks from which classes are told, mean over heads of the last layer."""
    mean_NN = last_layer(model, tokens, system).mean(0)
    # A model that reads from left to right knows the text at its last token only.
    if float(mean_NN[0, 1:].sum()) == 0:
        return mean_NN[-1], "the last token"
    return mean_NN[0], "the first token, which stands for the whole text,"


def words_shaded(tokeniser: Tokeniser, tokens: list[int], weight_N: Tensor) -> tuple[list[Word], dict]:
    """Words with their shares; and what goes to the start and the end, which are no words."""
    special = {"special": percent(float(weight_N[0] + weight_N[-1])), "most": ""}
    if not tokens:
        return [], special
    word_N = tokeniser.words_of(torch.tensor(tokens))
    share_W = torch.zeros(int(word_N.max()) + 1).index_add_(0, word_N, weight_N[1:-1].float())
    texts = [
        tokeniser.decode([token for token, its in zip(tokens, word_N.tolist(), strict=True) if its == word]).strip()
        for word in range(len(share_W))
    ]
    most = max(float(share_W.max()), 1e-9)
    leaders = [int(word) for word in share_W.argsort(descending=True) if texts[int(word)]][:NUM_LEADERS]
    special["most"] = ", ".join(f"“{texts[word]}” {percent(float(share_W[word]))}" for word in leaders)
    return [
        Word(text, percent(float(share)), round(float(share) / most, 3))
        for text, share in zip(texts, share_W, strict=True)
        if text
    ], special


def _told(row: Row, text_of: TextOf) -> dict:
    return {
        "text": cut(text_of(row)),
        "name": row["name"],
        "predicted": row["predicted"],
        "target": row["target"],
        "is_right": row["predicted"] == row["target"],
        "sure": percent(float(row["confidence"])),
    }
