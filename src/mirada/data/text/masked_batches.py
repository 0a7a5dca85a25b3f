"""Texts with hidden tokens: inputs are [start] + tokens + [end], some replaced, targets the hidden ones (BERT).

New tokens are hidden in every epoch; in an evaluation always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.masked_tokens import mask_tokens
from mirada.data.order import step_generator
from mirada.data.text.buckets import pooled_order
from mirada.data.text.numbered_batches import EVALUATION_EPOCH, NumberedBatches, require_positive
from mirada.data.text.token_rows import TokenRows, Tokens, room_within, row_numbers
from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError


class MaskedBatches(NumberedBatches):
    """Texts that are longer than `max_length`, special tokens counted, become several rows. whole_words: a word is
    hidden with all its tokens. rows: of the texts in their table."""

    def __init__(
        self,
        texts: Tokens,
        tokeniser: Tokeniser,
        *,
        batch_size: int,
        max_length: int,
        share: float = 0.15,
        whole_words: bool = False,
        seed: int = 0,
        rows: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        super().__init__(seed)
        require_positive(batch_size=batch_size)
        self.hiding = Hiding(texts, tokeniser, max_length, share, whole_words, row_numbers(rows, len(texts)))
        if len(self.hiding) == 0:
            raise MiradaError("there are 0 training texts with tokens, expected at least 1.")
        self.batch_size = batch_size
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        return max(1, len(self.hiding) // self.batch_size)

    def batch(self, epoch: int, step: int) -> Batch:
        if self._order[0] != epoch:
            self._order = (epoch, pooled_order(self.hiding.texts.length, self.batch_size, self.seed, epoch))
        return self.hiding.batch(self._order[1][step], step_generator(self.seed, epoch, step))


def masked_evaluation(
    texts: Tokens,
    tokeniser: Tokeniser,
    *,
    batch_size: int,
    max_length: int,
    share: float = 0.15,
    whole_words: bool = False,
    seed: int = 0,
    rows: Sequence[int] | np.ndarray | None = None,
) -> Iterator[Batch]:
    """Every text once, shortest first, the same tokens hidden every time."""
    require_positive(batch_size=batch_size)
    hiding = Hiding(texts, tokeniser, max_length, share, whole_words, row_numbers(rows, len(texts)))
    order = hiding.texts.length.argsort(stable=True)
    for step, chosen in enumerate(order.split(batch_size) if len(order) else ()):
        yield hiding.batch(chosen, step_generator(seed, EVALUATION_EPOCH, step))


class Hiding:
    """Rows of text, and which of their tokens may be hidden. Texts without ordinary tokens are left out."""

    def __init__(
        self, texts: Tokens, tokeniser: Tokeniser, max_length: int, share: float, whole_words: bool, rows: Tensor
    ) -> None:
        room = room_within(max_length, 2)
        self.ordinary = tokeniser.ordinary
        known = set(self.ordinary.tolist())
        places = [
            (row, first)
            for row, text in enumerate(texts)
            for first in range(0, len(text), room)
            if not known.isdisjoint(text[first : first + room])
        ]
        pieces = [texts[row][first : first + room] for row, first in places]
        self.texts = TokenRows(pieces, before=[tokeniser.start], after=[tokeniser.end])
        self.rows = rows[[row for row, _ in places]]
        self.tokeniser, self.share, self.whole_words = tokeniser, share, whole_words
        self.is_special_T = torch.ones(len(tokeniser), dtype=torch.bool).index_fill_(0, self.ordinary, False)

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        token_BN = self.texts.padded(chosen, self.tokeniser.pad)
        inputs_BN, targets_BN = mask_tokens(
            token_BN,
            is_special_BN=self.is_special_T[token_BN],
            mask_id=self.tokeniser.mask,
            ordinary=self.ordinary,
            generator=generator,
            share=self.share,
            words_BN=self.tokeniser.words_of(token_BN) if self.whole_words else None,
        )
        return Batch(inputs_BN, targets_BN, self.rows[chosen])
