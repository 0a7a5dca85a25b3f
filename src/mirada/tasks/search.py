"""The likeliest text that a model writes for a source: greedy and beam search, many sentences at once.

    score(Y) = log p(Y | X) / penalty(|Y|),     log p(Y | X) = Σ_n log p(y_n | y_1 … y_{n−1}, X),     y_|Y| = end

A length is a number of tokens with the end token. A sentence's result depends on nothing else in its batch.

Shape letters: B sentences, S those still searched, W their beams, R = S·W rows, M tokens of the source, N tokens read
or written, T tokens of the vocabulary, C candidates of a row, X those of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.nn.decoding import State
from mirada.tasks.candidates import Forbidden, likeliest
from mirada.tasks.length_penalty import LengthPenalty

LONGER_THAN_SOURCE = 50  # tokens, Vaswani 2017, section 6.1


class PairModel(Protocol):
    """What can be searched: Transformer, Seq2Seq, or anything else that reads a source and says which token is next."""

    pad: int

    def begin(self, source_BM: Tensor, /) -> State: ...
    def next_logits(self, read_BN: Tensor, state: Any, /) -> Tensor: ...


@dataclass(frozen=True)
class Hypothesis:
    """A text without its start and end tokens; `log_probability` has the end token's, `score` is it over the penalty.

    One that is not finished was cut off at the greatest length.
    """

    tokens: list[int]
    score: float
    log_probability: float
    is_finished: bool


def greedy(model: PairModel, source_BM: Tensor, *, start: int, end: int, **how: Any) -> list[Hypothesis]:
    """The likeliest token at every step, until it is `end`; `how` as in `beam_search`."""
    found = beam_search(model, source_BM, start=start, end=end, beam=1, penalty="none", **how)
    return [best for (best,) in found]


@torch.inference_mode()
def beam_search(
    model: PairModel,
    source_BM: Tensor,
    *,
    start: int,
    end: int,
    beam: int = 4,
    max_length: int | None = None,
    penalty: LengthPenalty | str = "gnmt",
    n_best: int = 1,
    pad: int | None = None,
    forbidden: Iterable[int] = (),
    min_length: int = 0,
    no_repeat_ngram: int | None = None,
) -> list[list[Hypothesis]]:
    """For every sentence its `n_best` hypotheses, best first; fewer only where fewer texts ended.

    pad              of the vocabulary that is written, if it is another one than the source's
    max_length       of every sentence; if None, 50 more than its source has tokens
    forbidden        tokens that are never written, such as the unknown one; padding and start never are
    min_length       no text ends earlier
    no_repeat_ngram  no n tokens of a text occur twice in it

    At every step the `beam` best unfinished texts go on. Those that end and are among the `beam` best of their step
    are kept, and the search of a sentence stops when no text that goes on can beat the worst of the `n_best` kept.
    With one beam the first text that ends is taken. Of equals, the earlier beam and the smaller token number win.
    """
    penalty = penalty if isinstance(penalty, LengthPenalty) else LengthPenalty(penalty)
    if not 1 <= n_best <= beam:
        raise MiradaError(f"n_best={n_best} with beam={beam}: must be at least 1 and at most the beam; widen the beam")
    if max_length is not None and max_length < max(1, min_length):
        raise MiradaError(f"max_length={max_length}: must be at least 1 and at least min_length={min_length}")
    never = {model.pad if pad is None else pad, start} - {end} | set(forbidden)
    rules = Forbidden(end, tuple(sorted(never)), min_length, no_repeat_ngram)
    if not len(source_BM):
        return []
    lengths = (source_BM != model.pad).sum(1).tolist()
    limits = [max_length or max(length + LONGER_THAN_SOURCE, min_length) for length in lengths]
    sentences = [_Sentence(limit, penalty, n_best, takes_first=beam == 1) for limit in limits]

    searched = sentences
    state = model.begin(source_BM)
    # One beam at the first step, where all would be equal.
    total_SW = torch.zeros(len(source_BM), 1, dtype=torch.float64, device=source_BM.device)
    unread_R1 = torch.full((len(source_BM), 1), start, device=source_BM.device)
    written_RN = unread_R1[:, :0]
    while searched:
        logits_RT = model.next_logits(unread_R1, state)[:, -1]
        # Of twice as many candidates as beams at most half end, so enough go on.
        log_RC, token_RC = likeliest(logits_RT, written_RN, rules, 2 * beam)
        (S, W), C = total_SW.shape, token_RC.shape[1]
        total_SX = (total_SW[..., None] + log_RC.unflatten(0, (S, W))).flatten(1)
        total_SX, order_SX = (sorted_SX[:, : 2 * beam] for sorted_SX in total_SX.sort(descending=True, stable=True))
        token_SX = token_RC.reshape(S, -1).gather(1, order_SX)
        row_SX = order_SX // C + W * torch.arange(S, device=order_SX.device)[:, None]

        ends_SX = token_SX == end
        for s, x in (ends_SX & total_SX.isfinite())[:, :beam].nonzero().tolist():
            searched[s].keep(written_RN[row_SX[s, x]].tolist(), total_SX[s, x].item())
        total_SX, order_SX = total_SX.masked_fill(ends_SX, -torch.inf).sort(descending=True, stable=True)
        total_SW, going_on_SW = total_SX[:, :beam], order_SX[:, :beam]
        token_SW, row_SW = token_SX.gather(1, going_on_SW), row_SX.gather(1, going_on_SW)

        length, undecided = written_RN.shape[1] + 1, []
        for s, best in enumerate(total_SW[:, 0].tolist()):
            if not searched[s].is_decided(length, best):
                undecided.append(s)
            elif not searched[s].kept:
                texts = torch.cat([written_RN[row_SW[s]], token_SW[s, :, None]], dim=1)
                searched[s].cut_off(texts[:n_best].tolist(), total_SW[s, :n_best].tolist())
        searched, total_SW = [searched[s] for s in undecided], total_SW[undecided]
        row_R, unread_R1 = row_SW[undecided].flatten(), token_SW[undecided].reshape(-1, 1)
        if searched and not torch.equal(row_R, torch.arange(S * W, device=row_R.device)):
            state.reorder(row_R)
        written_RN = torch.cat([written_RN[row_R], unread_R1], dim=1)
    return [sentence.kept for sentence in sentences]


@dataclass
class _Sentence:
    """The best texts found so far, and whether better ones may come."""

    limit: int
    penalty: LengthPenalty
    n_best: int
    takes_first: bool
    kept: list[Hypothesis] = field(default_factory=list)

    def keep(self, tokens: list[int], log_probability: float) -> None:
        score = self.penalty.score(log_probability, len(tokens) + 1)
        self.kept.append(Hypothesis(tokens, score, log_probability, is_finished=True))
        self.kept = sorted(self.kept, key=lambda hypothesis: -hypothesis.score)[: self.n_best]  # the earlier of equals

    def cut_off(self, texts: list[list[int]], log_probabilities: list[float]) -> None:
        for tokens, total in zip(texts, log_probabilities, strict=True):
            self.kept.append(Hypothesis(tokens, self.penalty.score(total, len(tokens)), total, is_finished=False))

    def is_decided(self, length: int, best: float) -> bool:
        """`best` is the log-probability of the likeliest text that goes on after `length` tokens."""
        if length == self.limit or best == -torch.inf:
            return True
        if len(self.kept) < self.n_best:
            return False
        return self.takes_first or self.penalty.best_score(best, length + 1, self.limit) <= self.kept[-1].score
