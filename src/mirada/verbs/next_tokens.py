"""What a model of text would write next, step by step: after a text, in a translation, or in a blank.

    p(y) = exp(logit_y − log Σ_t exp(logit_t)),     over all tokens t of the model

Shape letters: N tokens, T vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.tasks.filling import BLANK
from mirada.verbs.load import Trained
from mirada.verbs.text.trained import VERBS, TrainedText


@dataclass(frozen=True)
class Next:
    """A token that may come next. `text` is what is there if it is chosen: the text, or the translation so far."""

    text: str
    token: str
    probability: float


@dataclass(frozen=True)
class NextTokens:
    """`tokens` are what has been read or written so far; `is_end` if the likeliest is that nothing follows."""

    tokens: list[str]
    top: list[Next]
    is_end: bool


def next_tokens(trained: Trained, text: str, *, written: str = "", count: int = 10) -> NextTokens:
    """The `count` likeliest: after the text, after what is `written` of its translation, or in its first blank."""
    if not isinstance(trained, TrainedText) or trained.does not in _ASKED:
        does = VERBS[trained.does] if isinstance(trained, TrainedText) else "was not trained on text"
        raise MiradaError(f"{trained.folder.path}: no token comes next, as this model {does}.")
    return _ASKED[trained.does](trained, text, written, count)


def _after_text(trained: TrainedText, text: str, written: str, count: int) -> NextTokens:
    tokeniser, writer = trained.tokeniser, trained.writer
    known = writer.known(text)
    logits_T = _run(trained, [writer.seen(known)])[-1]
    start = tokeniser.decode(known) if tokeniser.encode(text) else ""

    def with_it(token: int) -> str:
        # What stands already stays as it was typed: only the end of the text is the token's.
        if token == tokeniser.end:
            return text
        if not start:
            return tokeniser.decode([token])
        return text + tokeniser.decode([*known, token])[len(start) :]

    return _likeliest(tokeniser, known, logits_T, count, with_it)


def _of_translation(trained: TrainedText, text: str, written: str, count: int) -> NextTokens:
    translator = trained.translator
    source, so_far = translator.source.encode(text.strip()), translator.target.encode(written)
    if not source:
        raise MiradaError("an empty sentence has no translation; give some words.")
    if max(len(source), len(so_far)) > translator.longest:
        raise MiradaError(f"the sentence has over {translator.longest:,} tokens; divide it.")
    read = [translator.target.start, *so_far]
    logits_T = _run(trained, translator.read([source]), [read])[-1]

    def with_it(token: int) -> str:
        return written if token == translator.target.end else translator.target.decode([*so_far, token])

    return _likeliest(translator.target, read, logits_T, count, with_it)


def _in_blank(trained: TrainedText, text: str, written: str, count: int) -> NextTokens:
    """Blanks are filled one after the other, from the first."""
    tokeniser = trained.tokeniser
    pieces = BLANK.split(text)
    if len(pieces) == 1:
        raise MiradaError(f"{text[:80]!r}: has no blank to fill in; write [MASK] or ___ where a word is missing.")
    tokens = [tokeniser.start, *tokeniser.encode_blanks(pieces), tokeniser.end]
    place = tokens.index(tokeniser.mask)
    logits_T = trained.filler.logits(tokens)[place]
    blank = BLANK.search(text)
    assert blank is not None

    def with_it(token: int) -> str:
        return text[: blank.start()] + tokeniser.decode([token]).strip() + text[blank.end() :]

    return _likeliest(tokeniser, tokens, logits_T, count, with_it)


_ASKED: dict[str, Callable[[TrainedText, str, str, int], NextTokens]] = {
    "generate": _after_text,
    "translate": _of_translation,
    "fill": _in_blank,
}


@torch.inference_mode()
def _run(trained: TrainedText, *rows: list[list[int]] | Tensor) -> Tensor:
    """(N, T) of one text."""
    inputs = [torch.as_tensor(row, device=trained.device) for row in rows]
    return trained.model.eval()(*inputs)[0].float().cpu()


def _likeliest(
    tokeniser: Tokeniser, read: list[int], logits_T: Tensor, count: int, with_it: Callable[[int], str]
) -> NextTokens:
    probability_T = (logits_T - logits_T.logsumexp(-1)).exp()[: len(tokeniser)]
    end = tokeniser.special.get("end")
    probability_T[[token for token in {*tokeniser.special.values()} - {end} if token >= 0]] = 0  # never written
    best = probability_T.topk(min(count, len(probability_T)))
    top = [
        Next(with_it(token), _named(tokeniser, token), probability)
        for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        if probability > 0
    ]
    is_end = bool(len(best.indices)) and int(best.indices[0]) == end
    return NextTokens([_named(tokeniser, token) for token in read], top, is_end)


def _named(tokeniser: Tokeniser, token: int) -> str:
    """A special token by the name of what it does."""
    names = {number: f"[{role}]" for role, number in tokeniser.special.items()}
    return names.get(token) or tokeniser.tokens([token])[0]
