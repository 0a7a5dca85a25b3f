"""What a text model's answer rests on: a number for every token.

    explain_tokens   the class of a text, the token that comes next, or the one that was hidden (BERT, GPT)
    explain_pairs    a token of a translation, from the source and from what was written before it

Shape letters: B batch, N tokens that are read (of a translation: written so far), M tokens of a source, T vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.grad_cam import grad_cam, layer_cam
from mirada.explain.integrated_gradients import integrated_gradients
from mirada.explain.legrad import legrad
from mirada.explain.looks import Tokens
from mirada.explain.methods import DEFAULT, Method, method_named
from mirada.explain.raw_attention import look_named, raw_attention
from mirada.explain.seen import first_output_replaced
from mirada.explain.trace import Trace, require_eval, trace
from mirada.explain.walk import Relevance
from mirada.systems.bert import Bert
from mirada.systems.gpt import GPT

TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class ExplainedTokens:
    """`relevance_BN` of the tokens that are read, of a translation those of its source; `written_BN` of what was
    written before, where the method tells; `target_B` the class or token that was asked about, `at_B` where."""

    relevance_BN: Tensor
    target_B: Tensor
    at_B: Tensor
    method: Method
    written_BN: Tensor | None = None


@dataclass(frozen=True)
class TokenQuestion:
    """score = outputs[b, target_b] of classes, outputs[b, at_b, target_b] of tokens."""

    target_B: Tensor
    at_B: Tensor

    def score(self, outputs: Tensor) -> Tensor:
        rows_B = torch.arange(len(outputs), device=outputs.device)
        return outputs[rows_B, self.target_B] if outputs.ndim == 2 else outputs[rows_B, self.at_B, self.target_B]

    def repeated(self, count: int) -> TokenQuestion:
        """For inputs each of which is there so many times, one after the other."""
        return TokenQuestion(self.target_B.repeat_interleave(count), self.at_B.repeat_interleave(count))


def explain_tokens(
    model: nn.Module,
    token_BN: Tensor,
    *,
    method: str = DEFAULT,
    target: Tensor | int | None = None,
    at: Tensor | int | None = None,
    layer: int | str = -1,
    head: int | None = None,
    cover: int | None = None,
) -> ExplainedTokens:
    """`target` is the class or token to explain (None: the likeliest), `at` the token after which it comes, or that
    hides it (None: the last one; of classes, the one that they are read from); `cover` the token that covers others
    for occlusion and that integrated gradients start from, an unknown or hidden one say (None: no token at all).
    """
    require_eval(model)
    if not isinstance(model, Bert | GPT):
        raise MiradaError(f"{type(model).__name__} is no model of single texts: explain_pairs is for translators")
    known = method_named(method)
    at_B = _reading(model, token_BN, at)
    with torch.no_grad():
        question = _question(model(token_BN), target, at_B)
    run = _Run(model, (token_BN,), question, model.embedding, cover)
    if known.follow is not None or method == "attention":
        relevance = run.by_looks(known, at_B, layer, head)
    elif method == "legrad":
        relevance = legrad(
            model,
            token_BN,
            layers=list(model.encoder.layers),
            read_out=_read_out(model, token_BN),
            score=question.score,
        )
    elif method in ("grad_cam", "layer_cam"):
        module = model.encoder.layers[-1].get_submodule("attention.inner")
        form = grad_cam if method == "grad_cam" else layer_cam
        relevance = form(model, token_BN, module=module, score=question.score)
    else:
        relevance = run.by_tokens(known)
    is_real_BN = token_BN != model.pad
    return ExplainedTokens(relevance.values_BRX[:, 0] * is_real_BN, question.target_B, at_B, known)


def explain_pairs(
    model: nn.Module,
    source_BM: Tensor,
    read_BN: Tensor,
    *,
    method: str = DEFAULT,
    at: Tensor | int = -1,
    target: Tensor | int | None = None,
    layer: int | str = -1,
    head: int | None = None,
    cover: int | None = None,
) -> ExplainedTokens:
    """The token that is written after token `at` of those written so far, from the source."""
    require_eval(model)
    if not hasattr(model, "tokens") or not hasattr(model, "begin"):
        raise MiradaError(f"{type(model).__name__} does not read a source: explain_tokens is for it")
    known = method_named(method)
    at_B = torch.as_tensor(at, device=read_BN.device).expand(len(read_BN)) % read_BN.shape[1]
    with torch.no_grad():
        question = _question(model(source_BM, read_BN), target, at_B)
    run = _Run(model, (source_BM, read_BN), question, model.tokens.source, cover)  # type: ignore[union-attr,arg-type]
    if known.follow is not None or method == "attention":
        relevance = run.by_looks(known, at_B, layer, head)
    elif method in ("integrated_gradients", "occlusion"):
        relevance = run.by_tokens(known)
    else:
        raise MiradaError(
            f"{method} asks for one answer that is read from one text, and {type(model).__name__} writes token by "
            "token: use chefer, rollout, integrated_gradients or occlusion"
        )
    values_BM = relevance.values_BRX[:, 0] * (source_BM != model.pad)
    written_BN = None if relevance.target_BRN is None else relevance.target_BRN[:, 0]
    return ExplainedTokens(values_BM, question.target_B, at_B, known, written_BN)


@dataclass(frozen=True)
class _Run:
    model: nn.Module
    inputs: tuple[Tensor, ...]  # the first is what is explained
    question: TokenQuestion
    embedding: nn.Module
    cover: int | None

    def by_looks(self, method: Method, at_B: Tensor, layer: int | str, head: int | None) -> Relevance:
        found = trace(self.model, *self.inputs, score=self.question.score if method.needs_gradient else None)
        steps = [look for look in found.looks if look.kind == "cross" and len(look.queries) == 1]
        if steps and self.inputs[-1].shape[1] > 1:
            return self._by_steps(method, found, at_B, head)
        if method.follow is not None:
            return method.follow(found.looks, self._start(at_B, len(found.looks[-1].queries)))
        across = [look for look in found.looks if look.kind == "cross"]
        look = look_named(across or found.looks, layer)
        return raw_attention(look, self._start(at_B, len(look.queries)), head)

    def _by_steps(self, method: Method, found: Trace, at_B: Tensor, head: int | None) -> Relevance:
        """A recurrent decoder looks once for every token that it writes."""
        if method.name != "attention":
            raise MiradaError(
                f"{method.name} follows layers of attention, and what {type(self.model).__name__} carries in its state "
                "from token to token is none: use attention, integrated_gradients or occlusion"
            )
        start_B11 = torch.ones(len(at_B), 1, 1, device=at_B.device)
        rows = torch.stack([raw_attention(look, start_B11, head).values_BRX for look in found.looks])
        return Relevance(rows[at_B, torch.arange(len(at_B), device=at_B.device)], found.looks[0].keys)

    def _start(self, at_B: Tensor, num_tokens: int) -> Tensor:
        return nn.functional.one_hot(at_B, num_tokens)[:, None].float()

    def by_tokens(self, method: Method) -> Relevance:
        text_BN, others = self.inputs[0], self.inputs[1:]
        tokens = Tokens((text_BN.shape[1],))
        if method.name == "integrated_gradients":
            x_BND = self.embedding(text_BN).detach()
            start_BND = torch.zeros_like(x_BND)
            if self.cover is not None:
                start_BND += self.embedding(torch.full_like(text_BN[:1, :1], self.cover)).detach()
            found = integrated_gradients(self._score_of_embedded(text_BN, others), x_BND, start_BND)
            return Relevance(found.sum(-1)[:, None], tokens)
        return Relevance(self._covered(text_BN, others)[:, None], tokens)

    def _score_of_embedded(self, text_BN: Tensor, others: tuple[Tensor, ...]) -> Callable[[Tensor], Tensor]:
        def score(x_BND: Tensor) -> Tensor:
            with first_output_replaced(self.embedding, lambda _: x_BND):
                return self.question.score(self.model(text_BN, *others))

        return score

    @torch.no_grad()
    def _covered(self, text_BN: Tensor, others: tuple[Tensor, ...]) -> Tensor:
        """(B, N): how far the score falls when one token is covered."""
        if self.cover is None:
            raise MiradaError("occlusion covers tokens by another: say which by `cover`, the unknown or hidden one")
        num_tokens = text_BN.shape[1]
        whole_B = self.question.score(self.model(text_BN, *others))
        left = []
        for number in range(len(text_BN)):  # one text after the other: each is read as often as it has tokens
            one = slice(number, number + 1)
            covered_NN = text_BN[one].repeat(num_tokens, 1)
            covered_NN.diagonal()[text_BN[number] != self.model.pad] = self.cover
            asked = TokenQuestion(self.question.target_B[one], self.question.at_B[one])
            left.append(
                torch.cat(
                    [
                        asked.repeated(len(some)).score(
                            self.model(some, *(other[one].expand(len(some), -1) for other in others))
                        )
                        for some in covered_NN.split(TEXTS_AT_ONCE)
                    ]
                )
            )
        return whole_B[:, None] - torch.stack(left)


def _question(outputs: Tensor, target: Tensor | int | None, at_B: Tensor) -> TokenQuestion:
    scores_BT = outputs if outputs.ndim == 2 else outputs[torch.arange(len(outputs), device=outputs.device), at_B]
    if target is None:
        return TokenQuestion(scores_BT.argmax(1), at_B)
    target_B = torch.as_tensor(target, device=outputs.device).expand(len(outputs))
    if not ((target_B >= 0) & (target_B < scores_BT.shape[1])).all():
        raise MiradaError(f"target={target}: must be from 0 to {scores_BT.shape[1] - 1}")
    return TokenQuestion(target_B, at_B)


def _reading(model: Bert | GPT, token_BN: Tensor, at: Tensor | int | None) -> Tensor:
    """The token that the answer is read from."""
    if at is not None and model.head is None:
        return torch.as_tensor(at, device=token_BN.device).expand(len(token_BN)) % token_BN.shape[1]
    if isinstance(model, Bert):
        if model.head is None:
            raise MiradaError("BERT fills in hidden tokens: say `at` which one is asked about")
        return torch.zeros(len(token_BN), dtype=torch.long, device=token_BN.device)
    place_N = torch.arange(token_BN.shape[1], device=token_BN.device)
    return (place_N * (token_BN != model.pad)).amax(1)


def _read_out(model: Bert | GPT, token_BN: Tensor) -> Callable[[Tensor], Tensor]:
    if isinstance(model, Bert):
        return lambda z_BND: model.answer(model.encoder.norm(z_BND))
    return lambda z_BND: model.answer(model.encoder.norm(z_BND), token_BN)
