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

    def applied(self, logits_RT: Tensor, written_RN: Tensor) -> Tensor:
        """A copy of the logits in which only the allowed tokens are left."""
        logits_RT = without(logits_RT, self.tokens)
        if written_RN.shape[1] + 1 < self.min_length:
            logits_RT[:, self.end] = -torch.inf
        if self.no_repeat_ngram is not None and written_RN.shape[1] >= self.no_repeat_ngram:
            logits_RT[repeating(written_RN, self.no_repeat_ngram)] = -torch.inf
        return logits_RT


def without(logits_RT: Tensor, tokens: tuple[int, ...]) -> Tensor:
    """A copy in which these are −∞; a number outside the vocabulary, such as a padding of −1, is no token."""
    known = [token for token in tokens if 0 <= token < logits_RT.shape[1]]
    return logits_RT.index_fill(1, torch.tensor(known, dtype=torch.long, device=logits_RT.device), -torch.inf)


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
    allowed_RT = rules.applied(logits_RT, written_RN)
    token_RC = top(allowed_RT, count)  # by logits: two that differ may have the same log p in the end
    is_allowed_RC = allowed_RT.gather(1, token_RC) > -torch.inf
    stuck_R = ~is_allowed_RC.any(1)
    if bool(stuck_R.any()):
        token_RC[stuck_R, 0], is_allowed_RC[stuck_R, 0] = rules.end, True
    log_RC = log_RT.gather(1, token_RC)
    if bool(log_RC.isnan().any()):  # all of a row is, if one logit is infinite or not a number
        raise MiradaError(BROKEN)
    return log_RC.double().masked_fill(~is_allowed_RC, -torch.inf), token_RC


def top(value_RT: Tensor, count: int) -> Tensor:
    """(R, C) where the `count` highest values of every row are, from left to right; of equals, those further left."""
    if count >= value_RT.shape[1]:
        return torch.arange(value_RT.shape[1], device=value_RT.device).repeat(len(value_RT), 1)
    highest, index = highest_of(value_RT, count + 1)
    if bool(((highest[:, -2] == highest[:, -1]) & highest[:, -1].isfinite()).any()):
        index = value_RT.sort(descending=True, stable=True).indices  # topk does not say which of equals it takes
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
