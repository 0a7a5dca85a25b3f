"""The tokens that may be written next, and how likely they are.

    log p(y) = logit_y − log Σ_t exp(logit_t),     over all tokens t, also those that are forbidden

Nothing is shared out anew among the allowed ones, so that a text scores what teacher forcing gives it.

Shape letters: R rows, N tokens written so far, T tokens of the vocabulary, C candidates, X tokens looked at closely.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.errors import MiradaError

BLOCK = 64  # tokens, of which first only the highest value is looked at

BROKEN = (
    "the model's scores of the next token are not numbers: its weights are broken; take an earlier checkpoint, or "
    "train with a smaller learning rate"
)


@dataclass(frozen=True)
class Forbidden:
    """tokens            never written
    min_length        `end` is not written as an earlier token than this one, the first being 1
    no_repeat_ngram   no n tokens of a text occur twice in it
    """

    end: int
    tokens: tuple[int, ...] = ()
    min_length: int = 0
    no_repeat_ngram: int | None = None

    def __post_init__(self) -> None:
        if self.end in self.tokens:
            raise MiradaError(f"token {self.end} is forbidden and is also the end of a text: without it none would end")
        if self.no_repeat_ngram is not None and self.no_repeat_ngram < 1:
            raise MiradaError(
                f"no_repeat_ngram={self.no_repeat_ngram}: must be at least 1, or None to allow repetition"
            )

    def applied_(self, log_RT: Tensor, written_RN: Tensor) -> None:
        """−∞ for all but the allowed tokens, in place: a copy of a whole vocabulary takes as long as half a layer."""
        log_RT.index_fill_(1, _known(self.tokens, log_RT), -torch.inf)
        if written_RN.shape[1] + 1 < self.min_length:
            log_RT[:, self.end] = -torch.inf
        if self.no_repeat_ngram is not None and written_RN.shape[1] >= self.no_repeat_ngram:
            log_RT[repeating(written_RN, self.no_repeat_ngram)] = -torch.inf


def without(logits_RT: Tensor, tokens: tuple[int, ...]) -> Tensor:
    """A copy in which these are −∞."""
    return logits_RT.index_fill(1, _known(tokens, logits_RT), -torch.inf)


def _known(tokens: tuple[int, ...], logits_RT: Tensor) -> Tensor:
    """A number outside the vocabulary, such as a padding of −1, is no token."""
    known = [token for token in tokens if 0 <= token < logits_RT.shape[1]]
    return torch.tensor(known, dtype=torch.long, device=logits_RT.device)


def repeating(written_RN: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """(rows, tokens) that would complete, as the next token, n tokens that the row already has."""
    ngram_RXn = written_RN.unfold(1, n, 1)
    last_Rm = written_RN[:, written_RN.shape[1] - (n - 1) :]
    rows, places = (ngram_RXn[..., :-1] == last_Rm[:, None]).all(-1).nonzero(as_tuple=True)
    return rows, ngram_RXn[rows, places, -1]


def likeliest(logits_RT: Tensor, written_RN: Tensor, rules: Forbidden, count: int) -> tuple[Tensor, Tensor]:
    """(R, C) the `count` likeliest tokens that are allowed, by number, and before them their log p.

    A row that may write nothing ends, whatever `min_length` says.
    """
    logits_RT = logits_RT.to(torch.promote_types(logits_RT.dtype, torch.float32))
    log_RT = logits_RT.log_softmax(1)
    log_end_R = log_RT[:, rules.end].clone()
    if bool(log_end_R.isnan().any()):  # as is all of a row, if one logit is infinite or not a number
        raise MiradaError(BROKEN)
    rules.applied_(log_RT, written_RN)
    token_RC = top(log_RT, count, logits_RT)
    log_RC = log_RT.gather(1, token_RC)
    stuck_R = (log_RC == -torch.inf).all(1)
    if bool(stuck_R.any()):
        token_RC[stuck_R, 0], log_RC[stuck_R, 0] = rules.end, log_end_R[stuck_R]
    return log_RC.double(), token_RC


def top(log_RT: Tensor, count: int, logits_RT: Tensor) -> Tensor:
    """(R, C) where the `count` highest values of every row are, from left to right.

    Of equals it is those with the higher logits, which may differ where log p no longer does, or those further left.
    """
    if count >= log_RT.shape[1]:
        return torch.arange(log_RT.shape[1], device=log_RT.device).repeat(len(log_RT), 1)
    highest, index = highest_of(log_RT, count + 1)
    if bool(((highest[:, -2] == highest[:, -1]) & highest[:, -1].isfinite()).any()):
        allowed_RT = logits_RT.masked_fill(log_RT == -torch.inf, -torch.inf)
        index = allowed_RT.sort(descending=True, stable=True).indices  # topk does not say which of equals it takes
    return index[:, :count].sort().values


def highest_of(value_RT: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest values of every row and where they are, as `topk` says it, several times as fast.

    They are in the `count` blocks whose highest values are the highest, or in the rest that fills no block.
    """
    num_blocks = value_RT.shape[1] // BLOCK
    if num_blocks < 4 * count:
        return value_RT.topk(count)
    whole = num_blocks * BLOCK
    block_RC = value_RT[:, :whole].unflatten(1, (num_blocks, BLOCK)).amax(2).topk(count, sorted=False).indices
    token_RX = (BLOCK * block_RC[..., None] + torch.arange(BLOCK, device=block_RC.device)).flatten(1)
    rest_X = torch.arange(whole, value_RT.shape[1], device=block_RC.device)
    token_RX = torch.cat([token_RX, rest_X.expand(len(token_RX), -1)], dim=1)
    highest, index = value_RT.gather(1, token_RX).topk(count)
    return highest, token_RX.gather(1, index)
