"""Beams of a sentence: texts that began alike, whose tokens are stored once for all that have them.

    hidden_swm = 0 where token m of sentence s is one of beam w, −∞ where it is another beam's only

Added to the logits, this is who looks at what. When beams change places it moves, and the keys and values stay.

Shape letters: S sentences, W beams of each, R = S·W rows, H heads, M tokens stored for a sentence, T tokens of a beam,
X new ones, K head dim.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor

from mirada.core.remembered import remembered

ROOM = 8  # tokens of every beam that may be stored before it is looked whether anyone still has the earlier ones


@dataclass(frozen=True)
class Beams:
    """`num_needed` tokens of a sentence, at most, were some beam's when it was last looked."""

    hidden_SWM: Tensor
    num_needed: int

    @classmethod
    def one_each(cls, num_rows: int, num_tokens: int, like: Tensor) -> Beams:
        return cls(like.new_zeros(num_rows, 1, num_tokens), num_tokens)

    @property
    def width(self) -> int:
        return self.hidden_SWM.shape[1]

    @property
    def num_stored(self) -> int:
        return self.hidden_SWM.shape[2]

    @property
    def are_crowded(self) -> bool:
        return self.num_stored > 2 * self.num_needed + ROOM * self.width

    def reordered(self, index_R: Tensor) -> tuple[list[int], Beams] | None:
        """The sentences that are left, and the beams that the former rows `index_R` are: None if they are uneven."""
        runs = [(sentence, len(list(run))) for sentence, run in groupby((index_R // self.width).tolist())]
        if len({width for _, width in runs}) != 1:
            return None
        hidden_RM = self.hidden_SWM.flatten(0, 1).index_select(0, index_R)
        return [sentence for sentence, _ in runs], Beams(hidden_RM.unflatten(0, (len(runs), -1)), self.num_needed)

    def longer(self, num_new: int) -> Beams:
        """With so many tokens more, each beam as many of them, those of the first beam first."""
        own_WX = _own(self.hidden_SWM, self.width, num_new // self.width, self.hidden_SWM.dtype)
        new_SWX = own_WX.expand(len(self.hidden_SWM), -1, -1)
        return Beams(torch.cat([self.hidden_SWM, new_SWX], dim=2), self.num_needed)

    def without_lost(self) -> tuple[Tensor, Beams]:
        """Without the tokens that no beam has any more: where the others (S, M) are, and the beams as they see them."""
        is_needed_SM = (self.hidden_SWM == 0).any(1)
        most = int(is_needed_SM.sum(1).max())
        index_SM = is_needed_SM.byte().sort(dim=1, descending=True, stable=True).indices[:, :most]
        hidden_SWM = self.hidden_SWM.gather(2, index_SM[:, None].expand(-1, self.width, -1))
        return index_SM, Beams(hidden_SWM, most)

    def together(self, new_RHXK: Tensor) -> Tensor:
        """(S, H, W·X, K): new tokens of the rows as their sentence stores them."""
        return new_RHXK.unflatten(0, (-1, self.width)).transpose(1, 2).flatten(2, 3)

    def apart(self, stored_SHMK: Tensor) -> Tensor:
        """(R, H, T, K): those of each row, in their order; M may leave out the last ones, which are not yet stored."""
        num_stored = stored_SHMK.shape[2]
        return of_tokens(stored_SHMK, self._index_RT if num_stored == self.num_stored else self._index_of(num_stored))

    @cached_property
    def _index_RT(self) -> Tensor:
        """For all layers of a step."""
        return self._index_of(self.num_stored)

    def _index_of(self, num_stored: int) -> Tensor:
        own_SWM = self.hidden_SWM[..., :num_stored] == 0
        return own_SWM.nonzero()[:, 2].view(len(own_SWM) * self.width, -1)


@remembered
def _own(device: torch.device, width: int, num_each: int, dtype: torch.dtype) -> Tensor:
    """(W, X): 0 for a beam's own new tokens, −∞ for those of the others."""
    return torch.eye(width, device=device, dtype=dtype).repeat_interleave(num_each, 1).log()


def of_tokens(stored_SHMK: Tensor, index_RT: Tensor) -> Tensor:
    """(R, H, T, K): of these tokens, R rows for S sentences with as many rows each."""
    width = len(index_RT) // len(stored_SHMK)
    sentence_R11 = torch.arange(len(index_RT), device=index_RT.device)[:, None, None] // width
    head_H1 = torch.arange(stored_SHMK.shape[1], device=index_RT.device)[:, None]
    return stored_SHMK[sentence_R11, head_H1, index_RT[:, None]]
