"""Words and their neighbours (Mikolov 2013): inputs are the middle words, targets a true neighbour and K others.

    P(neighbour at distance d) ∝ W − d + 1,  d = 1 … W        as if the window were drawn from 1 … W each time
    P(other word w)            ∝ count_w^¾
    frequent words are taken √(t / frequency) as often, as middle word and as neighbour

Shape letters: B batch, K others, O offsets in the window, T words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.order import epoch_order, step_generator
from mirada.data.text.numbered_batches import EVALUATION_EPOCH, NumberedBatches, require_positive
from mirada.data.text.token_rows import TokenRows, Tokens, row_numbers
from mirada.errors import MiradaError

POWER = 0.75


class SkipgramBatches(NumberedBatches):
    """An epoch takes as many middle words as there are words that have a neighbour in their text.

    counts: how often each token occurs in the training texts. subsample: t above; 0: every word as often as it occurs.
    """

    def __init__(
        self,
        texts: Tokens,
        counts: Tensor,
        *,
        batch_size: int,
        window: int = 5,
        num_negatives: int = 5,
        subsample: float = 1e-3,
        seed: int = 0,
        rows: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        super().__init__(seed)
        require_positive(batch_size=batch_size, window=window, num_negatives=num_negatives)
        with_neighbours = [n for n, text in enumerate(texts) if len(text) > 1]
        if not with_neighbours:
            raise MiradaError(f"none of {len(texts)} texts has two words; expected texts of words with neighbours.")
        self.texts = TokenRows([texts[n] for n in with_neighbours])
        self.row_of = row_numbers(rows, len(texts))[with_neighbours].repeat_interleave(self.texts.length)
        self.first = self.texts.first.repeat_interleave(self.texts.length)
        self.last = self.first + self.texts.length.repeat_interleave(self.texts.length) - 1
        self.batch_size, self.num_negatives = batch_size, num_negatives
        self.offset_O = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])
        self.nearness_O = (window + 1 - self.offset_O.abs()).double()
        self.others_T = counts.double().pow(POWER).cumsum(0)
        self.taken_T = taken_share(counts, subsample)
        self.weights = self.taken_T[self.texts.flat.long()] if subsample > 0 else None
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        return max(1, len(self.texts.flat) // self.batch_size)

    def batch(self, epoch: int, step: int) -> Batch:
        if self._order[0] != epoch:
            self._order = (epoch, epoch_order(len(self.texts.flat), self.seed, epoch, self.weights))
        place_B = self._order[1][step * self.batch_size : (step + 1) * self.batch_size]
        return self.around(place_B, step_generator(self.seed, epoch, step))

    def around(self, place_B: Tensor, generator: torch.Generator) -> Batch:
        """The batch of these middle words."""
        words = self.texts.flat
        place_BO = place_B[:, None] + self.offset_O
        is_inside_BO = (place_BO >= self.first[place_B, None]) & (place_BO <= self.last[place_B, None])
        neighbour_BO = words[place_BO.clamp(0, len(words) - 1)].long()
        weight_BO = self.nearness_O * self.taken_T[neighbour_BO] * is_inside_BO
        chosen_B1 = torch.multinomial(weight_BO, 1, generator=generator)
        draw_BK = torch.rand(len(place_B), self.num_negatives, generator=generator, dtype=torch.float64)
        other_BK = torch.searchsorted(self.others_T, draw_BK * self.others_T[-1], right=True)
        targets_BK = torch.cat([neighbour_BO.gather(1, chosen_B1), other_BK], 1)
        return Batch(words[place_B].long(), targets_BK, self.row_of[place_B])


def skipgram_evaluation(texts: Tokens, counts: Tensor, *, batch_size: int, **options) -> Iterator[Batch]:
    """Every word that has a neighbour once, in order, with the same neighbour and others every time."""
    batches = SkipgramBatches(texts, counts, batch_size=batch_size, **options)
    for step, place in enumerate(torch.arange(len(batches.texts.flat)).split(batch_size)):
        yield batches.around(place, step_generator(batches.seed, EVALUATION_EPOCH, step))


def taken_share(counts: Tensor, subsample: float) -> Tensor:
    """(T,) min(1, √(t / frequency)); 1 for words that do not occur."""
    frequency = counts.double() / counts.sum().clamp(min=1)
    if subsample <= 0:
        return torch.ones_like(frequency)
    return (subsample / frequency.clamp(min=1e-300)).sqrt().clamp(max=1)
