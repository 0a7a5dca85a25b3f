"""The likeliest text that a model writes for a source: greedy and beam search, many sentences at once.

    score(Y) = log p(Y | X) / penalty(|Y|),     log p(Y | X) = Σ_n log p(y_n | y_1 … y_{n−1}, X),     y_|Y| = end

A length is a number of tokens with the end token. A sentence's result depends on nothing else in its batch, but for the
last bits.

Shape letters: B sentences, R rows, one for every beam of those still searched, M tokens of the source, N tokens read
or written, T tokens of the vocabulary, C candidates of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.nn.decoding import State
from mirada.tasks.candidates import Forbidden, likeliest
from mirada.tasks.length_penalty import LengthPenalty

LONGER_THAN_SOURCE = 50  # tokens, Vaswani 2017, section 6.1

Candidate = tuple[float, int, int]  # log-probability of a longer text, the row it goes on from, its last token


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
    longest: int | None = None,
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
    longest          of any, whatever else is asked for: as many tokens as a model has positions
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
    wanted = [max_length or max(length + LONGER_THAN_SOURCE, min_length) for length in lengths]
    limits = [min(limit, longest or limit) for limit in wanted]
    sentences = [_Sentence(limit, penalty, n_best, takes_first=beam == 1) for limit in limits]

    searched = sentences
    state = model.begin(source_BM)
    # One beam at the first step, where all would be equal.
    totals = [[0.0] for _ in sentences]
    unread_R1 = torch.full((len(source_BM), 1), start, device=source_BM.device)
    written_RN = unread_R1[:, :0]
    while searched:
        logits_RT = model.next_logits(unread_R1, state)[:, -1]
        # Of twice as many candidates as beams at most half end, so enough go on.
        log_RC, token_RC = likeliest(logits_RT, written_RN, rules, 2 * beam)
        steps = _steps(totals, log_RC.tolist(), token_RC.tolist(), 2 * beam)
        length, going_on = written_RN.shape[1] + 1, []
        for sentence, candidates in zip(searched, steps, strict=True):
            for total, row, token in candidates[:beam]:
                if token == end and total > -math.inf:
                    sentence.keep(written_RN[row].tolist(), total)
            open_ones = [(-math.inf if token == end else total, row, token) for total, row, token in candidates]
            beams = _sorted(open_ones)[:beam]
            if not sentence.is_decided(length, beams[0][0]):
                going_on.append((sentence, beams))
            elif not sentence.kept:
                texts = [[*written_RN[row].tolist(), token] for _, row, token in beams[:n_best]]
                sentence.cut_off(texts, [total for total, _, _ in beams[:n_best]])

        searched = [sentence for sentence, _ in going_on]
        totals = [[total for total, _, _ in beams] for _, beams in going_on]
        rows = [row for _, beams in going_on for _, row, _ in beams]
        if searched and rows != list(range(len(written_RN))):
            row_R = torch.tensor(rows, device=written_RN.device)
            state.reorder(row_R)
            written_RN = written_RN.index_select(0, row_R)
        if searched:
            unread_R1 = written_RN.new_tensor([[token] for _, beams in going_on for _, _, token in beams])
            written_RN = torch.cat([written_RN, unread_R1], dim=1)
    return [sentence.kept for sentence in sentences]


def _steps(
    totals: list[list[float]], log_RC: list[list[float]], token_RC: list[list[int]], count: int
) -> Iterator[list[Candidate]]:
    """For every sentence the `count` best texts that are one token longer than its beams, best first."""
    row = 0
    # There are few of them: numbers in lists are compared sooner than the first of a dozen tensor operations starts.
    for beams in totals:
        found = []
        for before in beams:
            found += [(before + log, row, token) for log, token in zip(log_RC[row], token_RC[row], strict=True)]
            row += 1
        yield _sorted(found)[:count]


def _sorted(candidates: list[Candidate]) -> list[Candidate]:
    """Best first; equals stay as they are."""
    return sorted(candidates, key=itemgetter(0), reverse=True)


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
