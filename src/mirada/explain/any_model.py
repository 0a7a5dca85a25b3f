"""`mirada.explain(model, x)`: any torch model, ours or from timm, transformers or torch itself, as it is.

Of images a number for every patch, of texts one for every token. Models of others are listened to while they run (see
`foreign`); methods that need more than the looks of their layers are for our own systems.

Shape letters: B batch, C classes, N tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import attention_layers
from mirada.errors import MiradaError
from mirada.explain.cells import cells_of
from mirada.explain.foreign import Inputs, Rows, foreign_looks, logits_of, reading_rows
from mirada.explain.foreign_tokens import square_patch
from mirada.explain.image import ExplainedImages, explain_images
from mirada.explain.looks import Look, Tokens
from mirada.explain.methods import DEFAULT, METHODS, Method, method_named
from mirada.explain.raw_attention import look_named, raw_attention
from mirada.explain.readers import one_reader
from mirada.explain.target import Question, question_of
from mirada.explain.text import ExplainedTokens, TokenQuestion, explain_tokens
from mirada.explain.trace import require_gradients
from mirada.explain.walk import Relevance
from mirada.systems.bert import Bert
from mirada.systems.gpt import GPT

BY_LOOKS = ["attention", *(name for name, method in METHODS.items() if method.follow is not None)]


def explain_model(
    model: nn.Module,
    inputs: Inputs,
    *,
    method: str = DEFAULT,
    target: Any = None,
    layer: int | str = -1,
    head: int | None = None,
    at: Any = None,
    tokens: Tokens | None = None,
    reads: Rows | None = None,
) -> ExplainedImages | ExplainedTokens:
    """`inputs` are normalised images (B, C, H, W), tokens (B, N), or keyword arguments as a tokeniser makes them.

    tokens   how tokens lie, of a model that does not tell: Tokens((rows, columns), num_extra)
    reads    which of them the answer is read from, where it is not known: "first", "mean", "last" …
    """
    if attention_layers(model):
        return _ours(model, inputs, method=method, target=target, layer=layer, head=head, at=at)
    known = method_named(method)
    inputs = _arguments(model, inputs)
    if method not in BY_LOOKS:
        raise MiradaError(
            f"{method} needs more of {type(model).__name__} than its attention: use one of {', '.join(BY_LOOKS)}"
        )
    if model.training:
        raise MiradaError(f"{type(model).__name__} is in training mode: call model.eval() before it is explained")
    if known.needs_gradient:
        require_gradients()
        with torch.no_grad():
            logits = logits_of(model(**inputs) if isinstance(inputs, Mapping) else model(inputs))
        question = _question(logits, target, at)
        looks, _ = foreign_looks(model, inputs, lambda output: question.score(logits_of(output)), tokens=tokens)
        is_of_words = logits.ndim == 3
    else:  # the same for every class, and for a model that gives none
        looks, output = foreign_looks(model, inputs, tokens=tokens)
        question, is_of_words = _perhaps(output, target, at)
    looks = _one_chain(looks)
    look = look_named(looks, layer) if method == "attention" else looks[-1]
    rows = reads or ("last" if is_of_words else reading_rows(model))
    start_BRN = _start(look.queries, rows, at, inputs, len(look.weights_BHNM)).to(look.weights_BHNM)
    relevance = raw_attention(look, start_BRN, head) if known.follow is None else known.follow(looks, start_BRN)
    return _explained(model, relevance, known, question, inputs)


def _ours(model: nn.Module, inputs: Any, **asked: Any) -> ExplainedImages | ExplainedTokens:
    name = type(model).__name__
    if not isinstance(inputs, Tensor):
        raise MiradaError(
            f"{name} is given {type(inputs).__name__}, expected a tensor: normalised images (B, C, H, W) or tokens "
            "(B, N); paths are for runs, mirada.explain(run, path)"
        )
    if isinstance(model, Bert | GPT):
        return explain_tokens(model, inputs, **asked)
    if inputs.ndim not in (4, 5):
        raise MiradaError(
            f"{name} takes more than a tensor of shape {tuple(inputs.shape)}: use explain_pairs, explain_node or "
            "explain_chips of mirada.explain"
        )
    return explain_images(model, inputs, **asked)


def _arguments(model: nn.Module, inputs: Any) -> Inputs:
    """One tensor for a layer of torch's attention is queries, keys and values."""
    if isinstance(inputs, Tensor) and isinstance(model, nn.MultiheadAttention):
        return {"query": inputs, "key": inputs, "value": inputs}
    if not isinstance(inputs, Tensor | Mapping):
        raise MiradaError(
            f"{type(model).__name__} is given {type(inputs).__name__}, expected a tensor or keyword arguments as a "
            "tokeniser makes them"
        )
    return inputs


def _perhaps(output: Any, target: Any, at: Any) -> tuple[Question | TokenQuestion, bool]:
    """What the answer would be about, where there is one; and whether it is a score of words."""
    try:
        logits = logits_of(output)
        return _question(logits, target, at), logits.ndim == 3
    except MiradaError:
        if target is not None:
            raise
        return Question(None), False


def _question(logits: Tensor, target: Any, at: Any) -> Question | TokenQuestion:
    if logits.ndim == 3:  # a score of every word at every token
        num_tokens = logits.shape[1]
        place = -1 if at is None else at
        if not isinstance(place, int) or not -num_tokens <= place < num_tokens:
            raise MiradaError(f"at={at}: must be a token from 0 to {num_tokens - 1}")
        asked_BT = logits[:, place]
        target_B = asked_BT.argmax(1) if target is None else question_of(asked_BT, target).target_B
        assert target_B is not None
        return TokenQuestion(target_B, torch.full((len(logits),), place % num_tokens, device=logits.device))
    return question_of(logits, target)


def _one_chain(looks: list[Look]) -> list[Look]:
    """A query that pools the tokens of the layer before looks at its own kind, as do tokens at as many others."""
    return [
        replace(look, kind="self") if len(look.queries) == 1 or look.queries == look.keys else look for look in looks
    ]


def _start(tokens: Tokens, reads: Rows, at: Any, inputs: Inputs, batch: int) -> Tensor:
    """(B, 1, N): who gives the answer."""
    if isinstance(at, tuple):
        return one_reader(tokens, at).expand(batch, 1, -1)
    share_BN = torch.zeros(batch, len(tokens))
    if len(tokens) == 1 or reads == "pool":
        share_BN[:] = 1 / len(tokens)
    elif reads == "first":
        share_BN[:, 0] = 1
    elif reads == "first two":
        share_BN[:, :2] = 0.5
    elif reads == "last":
        share_BN[torch.arange(batch), _last(inputs, at, len(tokens), batch)] = 1
    else:
        share_BN[:, tokens.num_extra :] = 1 / (len(tokens) - tokens.num_extra)
        if reads == "first and mean":
            share_BN *= 0.5
            share_BN[:, 0] = 0.5
    return share_BN[:, None]


def _last(inputs: Inputs, at: Any, num_tokens: int, batch: int) -> Tensor:
    """The last token that is no padding, or the one that is asked about."""
    if at is not None:
        return torch.as_tensor(at).expand(batch) % num_tokens
    mask = inputs.get("attention_mask") if isinstance(inputs, Mapping) else None
    if mask is None:
        return torch.full((batch,), num_tokens - 1)
    return (torch.arange(num_tokens) * mask.cpu()).amax(1)


def _explained(
    model: nn.Module, relevance: Relevance, method: Method, question: Question | TokenQuestion, inputs: Inputs
) -> ExplainedImages | ExplainedTokens:
    tokens = relevance.tokens
    values_BN = relevance.values_BRX[:, 0]
    if len(tokens.size) == 1:
        zeros_B = torch.zeros(len(values_BN), dtype=torch.long)
        target_B = zeros_B if question.target_B is None else question.target_B
        at_B = question.at_B if isinstance(question, TokenQuestion) else zeros_B
        mask = inputs.get("attention_mask") if isinstance(inputs, Mapping) else None
        return ExplainedTokens(values_BN if mask is None else values_BN * mask, target_B, at_B, method)
    values = values_BN[:, tokens.num_extra :].unflatten(1, tokens.size).float()
    images = next(x for x in (inputs.values() if isinstance(inputs, Mapping) else [inputs]) if x.ndim == 4)
    height, width = images.shape[-2:]
    cells = cells_of((height, width), (tokens.size[0], tokens.size[1]), square_patch(model))
    return ExplainedImages(values, cells, question.target_B, method)
