"""Explanations of texts: their class, the word that comes next, a hidden word, or a word of a translation.

Shape letters: N tokens, M tokens of a source, T vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.text import ExplainedTokens, explain_pairs, explain_tokens
from mirada.explain.trace import trace
from mirada.report.explained import ExplainedText, Layer, TokenMap
from mirada.tasks.filling import BLANK
from mirada.tasks.translation import Translation
from mirada.verbs.explain import Options, Progress
from mirada.verbs.explained.images import class_number
from mirada.verbs.load import Trained
from mirada.verbs.text.lines import texts_of
from mirada.verbs.text.trained import TrainedText

NUM_ANSWERS = 5
ByMethod = Callable[..., ExplainedTokens]  # method=…


@dataclass(frozen=True)
class Read:
    """A text as the model reads it, and how to explain it by a method."""

    tokens: list[str]
    source_tokens: list[str] | None
    inputs: tuple[Tensor, ...]
    answers: list[tuple[str, float]]
    target: str
    by_method: ByMethod
    translation: Translation | None = None


def explain_texts(
    trained: Trained, texts: object, options: Options, progress: Progress | None
) -> tuple[list[ExplainedText], list[str], list[str]]:
    assert isinstance(trained, TrainedText)
    require_readable(trained)
    items: list[ExplainedText] = []
    failures: list[str] = []
    notes: list[str] = []
    given = texts_of(texts)
    for number, text in enumerate(given):
        try:
            items.append(explained_text(trained, text, read_text(trained, text, options), options, notes))
        except MiradaError as error:
            if len(given) == 1:
                raise
            failures.append(f"{text[:60]!r}: {error}")
        if progress is not None:
            progress(number + 1, len(given))
    return items, failures, list(dict.fromkeys(notes))


def require_readable(trained: TrainedText) -> None:
    if trained.does not in READING:
        raise MiradaError(
            f"{trained.folder.path}: has vectors of words and no attention, so there is nothing to explain."
        )


def read_text(trained: TrainedText, text: str, options: Options) -> Read:
    require_readable(trained)
    return READING[trained.does](trained, text, options)


def explained_text(trained: TrainedText, text: str, read: Read, options: Options, notes: list[str]) -> ExplainedText:
    maps = []
    for method in options.methods:
        try:
            found = read.by_method(method=method)
        except MiradaError as error:
            if not options.may_skip:
                raise
            notes.append(f"{method} is left out: {error}")
            continue
        known = found.method
        written_N = None if found.written_BN is None else found.written_BN[0].float().cpu().numpy()
        relevance_N = found.relevance_BN[0].float().cpu().numpy()
        maps.append(TokenMap(known.name, known.title, known.is_not, relevance_N, known.cost, of_target_N=written_N))
    if not maps:
        raise MiradaError(notes[-1])
    layers = text_layers(trained, read.inputs)
    return ExplainedText(text, read.tokens, read.source_tokens, read.answers, read.target, maps, layers)


def _classified(trained: TrainedText, text: str, options: Options) -> Read:
    if options.at is not None:
        raise MiradaError("--at chooses a token that is written, and this model tells classes of texts; leave it out.")
    tokeniser = trained.tokeniser
    tokens = tokeniser.encode(text)[: int(trained.data["max_length"]) - 2]
    token_1N = torch.tensor([[tokeniser.start, *tokens, tokeniser.end]], device=trained.device)
    with torch.inference_mode():
        share_C = trained.task.probabilities(trained.model(token_1N).float())[0].cpu()  # type: ignore[attr-defined]
    names = trained.data["class_names"]
    best = share_C.argsort(descending=True)[:NUM_ANSWERS].tolist()
    chosen = class_number(trained, options.target)
    target = best[0] if chosen is None else chosen

    by_method = partial(
        explain_tokens,
        trained.model,
        token_1N,
        target=target,
        layer=options.layer,
        head=options.head,
        cover=tokeniser.unknown,
    )

    answers = [(str(names[number]), float(share_C[number])) for number in best]
    return Read(_shown(tokeniser, token_1N), None, (token_1N,), answers, str(names[target]), by_method)


def _continued(trained: TrainedText, text: str, options: Options) -> Read:
    """The token that comes after the text, or after token `at` of it."""
    tokeniser = trained.tokeniser
    tokens = tokeniser.encode(text)[-int(trained.data["max_length"]) :]
    if not tokens:
        raise MiradaError("an empty text has no token that could be explained; give some words.")
    return _of_one_token(trained, tokens, _place(options, len(tokens)), options)


def _filled(trained: TrainedText, text: str, options: Options) -> Read:
    """The first blank of a text, or the one that is token `at`."""
    tokeniser = trained.tokeniser
    pieces = BLANK.split(text)
    if len(pieces) == 1:
        raise MiradaError(f"{text!r}: has no blank to fill in; write [MASK] or ___ where a word is missing.")
    tokens = [tokeniser.start, *tokeniser.encode_blanks(pieces), tokeniser.end]
    place = tokens.index(tokeniser.mask) if options.at is None else _place(options, len(tokens))
    return _of_one_token(trained, tokens, place, options)


def _of_one_token(trained: TrainedText, tokens: list[int], place: int, options: Options) -> Read:
    tokeniser = trained.tokeniser
    token_1N = torch.tensor([tokens], device=trained.device)
    with torch.inference_mode():
        logits_T = trained.model(token_1N)[0, place, : len(tokeniser)].float().cpu()
    target, answers = _asked(tokeniser, logits_T, options)
    cover = tokeniser.mask if trained.does == "fill" else tokeniser.unknown

    by_method = partial(
        explain_tokens,
        trained.model,
        token_1N,
        target=target,
        at=place,
        layer=options.layer,
        head=options.head,
        cover=cover,
    )

    word = tokeniser.tokens([target])[0]
    return Read(_shown(tokeniser, token_1N), None, (token_1N,), answers, f"{word!r} at token {place}", by_method)


def _translated(trained: TrainedText, text: str, options: Options) -> Read:
    """A token of the model's own translation: the first, or token `at`."""
    translator = trained.translator
    source = translator.source.encode(text.strip())
    if not source:
        raise MiradaError("an empty sentence has no translation; give some words.")
    best = translator.translate([text])[0][0]
    written = translator.target.encode(best.text)
    source_1M = translator.read([source])
    read_1N = torch.tensor([[translator.target.start, *written]], device=trained.device)
    place = 0 if options.at is None else _place(options, read_1N.shape[1])
    with torch.inference_mode():
        logits_T = trained.model(source_1M, read_1N)[0, place, : len(translator.target)].float().cpu()
    asked = options if options.target is not None or place >= len(written) else None
    target, answers = _asked(translator.target, logits_T, asked or options, None if asked else written[place])

    by_method = partial(
        explain_pairs,
        trained.model,
        source_1M,
        read_1N,
        at=place,
        target=target,
        layer=options.layer,
        head=options.head,
        cover=translator.source.unknown,
    )

    word = translator.target.tokens([target])[0]
    return Read(
        _shown(translator.target, read_1N),
        _shown(translator.source, source_1M),
        (source_1M, read_1N),
        answers,
        f"{word!r}, token {place + 1} of “{best.text}”",
        by_method,
        best,
    )


READING: dict[str, Callable[[TrainedText, str, Options], Read]] = {
    "single-label": _classified,
    "generate": _continued,
    "fill": _filled,
    "translate": _translated,
}


def _asked(
    tokeniser: Any, logits_T: Tensor, options: Options, written: int | None = None
) -> tuple[int, list[tuple[str, float]]]:
    """The token to explain, and the likeliest ones with their shares."""
    share_T = (logits_T - logits_T.logsumexp(-1)).exp()
    best = share_T.argsort(descending=True)[:NUM_ANSWERS].tolist()
    answers = [(tokeniser.tokens([token])[0], float(share_T[token])) for token in best]
    if options.target is None:
        return (best[0] if written is None else written), answers
    tokens = tokeniser.encode(str(options.target))
    if len(tokens) != 1:
        raise MiradaError(
            f"target {options.target!r}: is {len(tokens)} tokens of this model, expected one; give a piece."
        )
    if tokens[0] == tokeniser.unknown:
        raise MiradaError(f"target {options.target!r}: is no token that this model knows; give another word.")
    return tokens[0], answers


def _place(options: Options, num_tokens: int) -> int:
    if options.at is None:
        return num_tokens - 1
    if len(options.at) != 1 or not -num_tokens <= options.at[0] < num_tokens:
        raise MiradaError(f"--at {','.join(map(str, options.at))}: expected a token from 0 to {num_tokens - 1}.")
    return options.at[0] % num_tokens


def _shown(tokeniser: Any, token_1N: Tensor) -> list[str]:
    """As they are read; a special token by the name of what it does."""
    names = {number: f"[{role}]" for role, number in tokeniser.special.items()}
    return [names.get(token) or tokeniser.tokens([token])[0] for token in token_1N[0].tolist()]


def text_layers(trained: TrainedText, inputs: tuple[Tensor, ...], names: Sequence[str] | None = None) -> list[Layer]:
    """Looks of a recurrent decoder, one for every token that it writes, are one layer."""
    layers: dict[str, list[Any]] = {}
    for look in trace(trained.model, *inputs, layers=names).looks:
        layers.setdefault(look.name, []).append(look)
    found = []
    for name, looks in layers.items():
        weights_HNM = torch.cat([look.weights_BHNM[0] for look in looks], dim=1).float().cpu().numpy()
        queries = ((weights_HNM.shape[1],), 0)
        found.append(Layer(name, weights_HNM, queries, ((weights_HNM.shape[2],), 0), looks[0].kind))
    return found
