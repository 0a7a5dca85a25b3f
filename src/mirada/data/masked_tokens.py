"""BERT's masked tokens: some tokens are hidden in the input and asked for in the target (Devlin 2019, section 3.1).

This replaces tokens; it is not an attention mask. Who may look at whom is `mirada.core.neighbours`.

Shape letters: B batch, N tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

IGNORED = -100  # the target of tokens that are not asked for, which cross-entropy leaves out


def mask_tokens(
    tokens_BN: Tensor,
    *,
    is_special_BN: Tensor,
    mask_id: int,
    ordinary: Tensor,
    generator: torch.Generator,
    share: float = 0.15,
    words_BN: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Inputs and targets: of each row max(1, round(share · n)) of its n ordinary tokens are asked for; of these 80 %
    become `mask_id`, 10 % any of the `ordinary` tokens, and 10 % stay. Special tokens are never asked for.

    words_BN: the number of the word that each token is part of. Words are then asked for as a whole, in a random order;
    one of which only k of n tokens are still wanted with the chance k / n, so that the share is met on average.
    """
    length_B = (~is_special_BN).sum(1)
    wanted_B = torch.where(length_B > 0, (share * length_B).round().clamp(min=1), 0)
    draw_BN = torch.rand(tokens_BN.shape, generator=generator)
    if words_BN is None:
        # A random order of the ordinary tokens of each row: the first `wanted` are asked for.
        rank_BN = draw_BN.masked_fill(is_special_BN, 2.0).argsort(1).argsort(1)
        is_asked_BN = rank_BN < wanted_B[:, None]
    else:
        before_BN, size_BN = _places_of_words(draw_BN.gather(1, words_BN).masked_fill(is_special_BN, 2.0))
        chance_BN = torch.rand(tokens_BN.shape, generator=generator).gather(1, words_BN)
        is_asked_BN = (before_BN + chance_BN * size_BN < wanted_B[:, None]) | (before_BN == 0)
        is_asked_BN &= ~is_special_BN
    fate_BN = torch.rand(tokens_BN.shape, generator=generator)
    other_BN = ordinary[torch.randint(0, len(ordinary), tokens_BN.shape, generator=generator)]
    inputs_BN = torch.where(is_asked_BN & (fate_BN < 0.8), mask_id, tokens_BN)
    inputs_BN = torch.where(is_asked_BN & (fate_BN >= 0.9), other_BN, inputs_BN)
    return inputs_BN, torch.where(is_asked_BN, tokens_BN, IGNORED)


def _places_of_words(draw_BN: Tensor) -> tuple[Tensor, Tensor]:
    """In the order of the draws, which are equal within a word: the tokens before each token's word, and in it."""
    sorted_BN = draw_BN.sort(1).values
    before_BN = torch.searchsorted(sorted_BN, draw_BN)
    return before_BN, torch.searchsorted(sorted_BN, draw_BN, right=True) - before_BN
