"""Held-out texts with a hidden token and what the model puts there, and the senses that its vectors tell apart."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.examples import SEED, Row, shuffled_rows
from mirada.report.matrices import MAX_TOKENS, last_layer
from mirada.report.style import Drawing, Theme, draw
from mirada.report.texts import cut, tokeniser_of
from mirada.report.texts_generate import attention_drawings, numbers
from mirada.report.wording import percent, shortened
from mirada.tasks.filling import Filler
from mirada.train.checkpoint import load_model

NUM_EXAMPLES, NUM_ANSWERS = 10, 5
SHORTEST = 6  # tokens of a text whose attention is drawn
AROUND = 120  # characters shown on either side of what is hidden
MAX_WORDS = 4  # whose senses are drawn
# Okabe and Ito 2008, each with a mark of its own, so that senses differ without colours too.
MARKS = (("#0072b2", "o"), ("#e69f00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#d55e00", "v"), ("#56b4e9", "P"))


def fill_section(run: Contents) -> dict:
    """Tables and pictures, or the sentences that say why there are none."""
    section: dict = {"numbers": numbers(run.result or {}), "examples": [], "missing": None}
    section |= {"attention": [], "no_attention": None, "senses": senses((run.result or {}).get("senses", {}))}
    if not run.predictions:
        reason = "There are no held-out texts in this run."
        return section | {"missing": reason, "no_attention": reason}
    try:
        tokeniser = tokeniser_of(run)
        model = load_model(run.folder.best)
    except MiradaError as error:
        reason = f"The model cannot be asked again: {error}"
        return section | {"missing": reason, "no_attention": reason}
    rows = shuffled_rows(run)
    filler = Filler(model, tokeniser, torch.device("cpu"))
    section["examples"] = filled(filler, rows, int(run.data["max_length"]) - 2)
    try:
        section["attention"] = _attention(run, model, tokeniser, rows)
    except MiradaError as error:
        section["no_attention"] = f"No attention is shown: {str(error).rstrip('.')}."
    return section


def filled(filler: Filler, rows: list[Row], most: int) -> list[dict]:
    """Of the first texts, one token each, drawn with a fixed seed, and what the model would put in its place."""
    generator = np.random.default_rng(SEED)
    tokeniser = filler.tokeniser
    told = []
    for row in rows:
        tokens = tokeniser.encode(row["text"].strip())[:most]
        places = hideable(tokeniser, tokens)
        if not places:
            continue
        place = int(generator.choice(places))
        read = [tokeniser.start, *tokens[:place], tokeniser.mask, *tokens[place + 1 :], tokeniser.end]
        logits_T = filler.logits(read)[place + 1]
        probability_T = (logits_T - logits_T.logsumexp(-1)).exp()
        best = probability_T.topk(NUM_ANSWERS)
        answers = zip(tokeniser.tokens(best.indices), best.values.tolist(), strict=True)
        before, after = tokeniser.decode(tokens[:place]), tokeniser.decode(tokens[place + 1 :])
        told.append(
            {
                "before": before if len(before) <= AROUND else "…" + before[-AROUND:],
                "after": cut(after, AROUND),
                "hidden": tokeniser.tokens([tokens[place]])[0],
                "is_right": int(best.indices[0]) == tokens[place],
                "probability": percent(float(probability_T[tokens[place]])),
                "answers": ", ".join(f"{token} {percent(value)}" for token, value in answers),
            }
        )
        if len(told) == NUM_EXAMPLES:
            break
    return told


def hideable(tokeniser: Tokeniser, tokens: list[int]) -> list[int]:
    """Places of tokens that are whole words; of any known tokens where there are none."""
    if not tokens:
        return []
    word = tokeniser.words_of(torch.tensor(tokens)).tolist()
    names = tokeniser.tokens(tokens)
    known = [place for place, token in enumerate(tokens) if token != tokeniser.unknown]
    whole = [place for place in known if word.count(word[place]) == 1 and any(map(str.isalnum, names[place]))]
    return whole or known


def _attention(run: Contents, model: torch.nn.Module, tokeniser: Tokeniser, rows: list[Row]) -> list[Drawing]:
    """The last layer on the first text that is short enough, else on the beginning of the first."""
    texts = [[tokeniser.start, *tokeniser.encode(row["text"].strip()), tokeniser.end] for row in rows[:100]]
    most = min(MAX_TOKENS, run.data["max_length"])
    chosen = next((tokens for tokens in texts if SHORTEST <= len(tokens) <= most), texts[0][:most])
    weights_HNM = last_layer(model, chosen, run.system)
    return attention_drawings(weights_HNM, tokeniser.tokens(chosen))


def senses(found: dict) -> list[dict]:
    """Per word the picture, and the two shares in words."""
    return [
        {
            "word": word,
            "said": sense_sentence(word, entry),
            "drawing": plane(f"senses-{number}", word, entry) if number <= MAX_WORDS else None,
        }
        for number, (word, entry) in enumerate(found.items(), start=1)
    ]


def sense_sentence(word: str, entry: dict) -> str:
    shares = [percent(entry[key]) for key in ("accuracy", "static_accuracy")]
    gap = entry["accuracy"] - entry["static_accuracy"]
    means = "the context helps" if gap > 0.02 else "the context does not help here"
    return (
        f"The vector of “{word}” in its sentence is nearest to the right sense in {shares[0]} of the sentences judged; "
        f"a static vector, the same in every sentence, in {shares[1]}: {means}. Of {entry['n']:,} sentences, half made "
        "the mean of each sense and the other half were judged."
    )


def plane(name: str, word: str, entry: dict) -> Drawing:
    """The vectors of one word in its sentences, along the two directions in which they differ most."""
    points = entry["points"]
    names = sorted({sense for _, _, sense in points})

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for sense, (colour, mark) in zip(names, MARKS * (1 + len(names) // len(MARKS)), strict=False):
            own = np.array([(x, y) for x, y, its in points if its == sense])
            axes.plot(own[:, 0], own[:, 1], mark, color=colour, alpha=0.75, markeredgewidth=0, label=shortened(sense))
        axes.set_title(f"“{shortened(word)}” in its sentences")
        axes.set_xlabel("first principal axis")
        axes.set_ylabel("second principal axis")
        axes.tick_params(labelbottom=False, labelleft=False)
        figure.legend(loc="outside lower center", ncols=3)

    counts = ", ".join(f"{sense} {sum(its == sense for _, _, its in points)}" for sense in names)
    return draw(name, f"Vectors of {word} in its sentences, by sense ({counts}). {sense_sentence(word, entry)}", paint)
