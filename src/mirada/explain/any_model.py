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
from mirada.explain.cells import Cells
from mirada.explain.foreign import Inputs, Rows, foreign_looks, logits_of, reading_rows
from mirada.explain.image import ExplainedImages, explain_images
from mirada.explain.looks import Look, Tokens
from mirada.explain.methods import DEFAULT, METHODS, Method, method_named
from mirada.explain.raw_attention import look_named, raw_attention
from mirada.explain.readers import one_reader
from mirada.explain.target import Question, question_of
from mirada.explain.text import ExplainedTokens, TokenQuestion, explain_tokens
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
        assert isinstance(inputs, Tensor)
        if isinstance(model, Bert | GPT):
            return explain_tokens(model, inputs, method=method, target=target, at=at, layer=layer, head=head)
        return explain_images(model, inputs, method=method, target=target, layer=layer, head=head, at=at)
    known = method_named(method)
    if method not in BY_LOOKS:
        raise MiradaError(
            f"{method} needs more of {type(model).__name__} than its attention: use one of {', '.join(BY_LOOKS)}"
        )
    with torch.no_grad():
        logits = logits_of(_run(model, inputs))
    question = _question(logits, target, at)
    score = (lambda output: question.score(logits_of(output))) if known.needs_gradient else None
    looks = _one_chain(foreign_looks(model, inputs, score, tokens=tokens)[0])
    look = look_named(looks, layer) if method == "attention" else looks[-1]
    start_BRN = _start(look.queries, reads or reading_rows(model), at, inputs, len(logits)).to(look.weights_BHNM)
    relevance = raw_attention(look, start_BRN, head) if known.follow is None else known.follow(looks, start_BRN)
    return _explained(relevance, known, question, inputs)


def _run(model: nn.Module, inputs: Inputs) -> Any:
    if model.training:
        raise MiradaError(f"{type(model).__name__} is in training mode: call model.eval() before it is explained")
    return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def _question(logits: Tensor, target: Any, at: Any) -> Question | TokenQuestion:
    if logits.ndim == 3:  # a score of every word at every token
        at_B = torch.as_tensor(-1 if at is None else at, device=logits.device).expand(len(logits)) % logits.shape[1]
        asked_BT = logits[torch.arange(len(logits), device=logits.device), at_B]
        target_B = asked_BT.argmax(1) if target is None else torch.as_tensor(target).expand(len(logits))
        return TokenQuestion(target_B.to(logits.device), at_B)
    return question_of(logits, target)


def _one_chain(looks: list[Look]) -> list[Look]:
    """A query that pools the tokens of the layer before looks at its own kind."""
    return [replace(look, kind="self") if len(look.queries) == 1 else look for look in looks]


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
    relevance: Relevance, method: Method, question: Question | TokenQuestion, inputs: Inputs
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
    rows, columns = tokens.size
    # Pixels right and below that fill no patch are left out by such models.
    cells = Cells((height, width), rows, columns, height // rows, width // columns)
    return ExplainedImages(values, cells, question.target_B, method)
