"""F2 and E45: BERT's masking replaces tokens, which is another thing than hiding keys."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from mirada.data.masked_tokens import IGNORED, mask_tokens

VOCABULARY, MASK, CLS, SEP = 997, 1000, 1001, 1002


def masked(num_rows: int, length: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    tokens = torch.randint(0, VOCABULARY, (num_rows, length))
    tokens[:, 0], tokens[:, -1] = CLS, SEP
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = mask_tokens(
        tokens, is_special_BN=tokens >= VOCABULARY, mask_id=MASK, ordinary=torch.arange(VOCABULARY), generator=generator
    )
    return tokens, inputs, targets


def test_F2_fifteen_percent_are_asked_for_and_become_mask_other_or_themselves():
    tokens, inputs, targets = masked(1009, 102)
    asked = targets != IGNORED
    assert (asked.sum(1) == round(0.15 * 100)).all()
    count = int(asked.sum())
    shares = {
        0.8: (inputs == MASK) & asked,
        0.1 * (1 - 1 / VOCABULARY): (inputs != MASK) & (inputs != tokens) & asked,
        0.1 * (1 + 1 / VOCABULARY): (inputs == tokens) & asked,
    }
    for expected, chosen in shares.items():
        sigma = math.sqrt(expected * (1 - expected) / count)
        assert abs(int(chosen.sum()) / count - expected) < 3 * sigma
    assert (targets[asked] == tokens[asked]).all()


def test_F2_special_tokens_and_tokens_that_are_not_asked_for_stay():
    tokens, inputs, targets = masked(211, 37)
    special = tokens >= VOCABULARY
    assert (inputs[special] == tokens[special]).all() and (targets[special] == IGNORED).all()
    assert (inputs == tokens)[targets == IGNORED].all()


def test_F2_at_least_one_token_is_asked_for_and_none_where_there_is_none():
    _, _, targets = masked(101, 5)
    assert ((targets != IGNORED).sum(1) == 1).all()
    _, inputs, targets = masked(7, 2)
    assert (targets == IGNORED).all() and (inputs >= VOCABULARY).all()


def test_F2_the_loss_sees_only_the_tokens_asked_for():
    _, _, targets = masked(3, 23)
    logits = torch.randn(3, 23, VOCABULARY)
    changed = logits + 5 * torch.randn_like(logits) * (targets == IGNORED)[..., None]
    one, other = (F.cross_entropy(x.flatten(0, 1), targets.flatten(), ignore_index=IGNORED) for x in (logits, changed))
    assert one == other


def test_F2_the_same_seed_masks_the_same_tokens():
    torch.manual_seed(1)
    first = masked(5, 31, seed=3)
    torch.manual_seed(1)
    assert all(torch.equal(a, b) for a, b in zip(first, masked(5, 31, seed=3), strict=True))


def test_F2_whole_words_are_asked_for_or_left_alone():
    torch.manual_seed(2)
    num_rows, length = 1009, 101
    tokens = torch.randint(0, VOCABULARY, (num_rows, length))
    tokens[:, 0] = CLS
    words = (torch.rand(num_rows, length) < 0.6).long().cumsum(1)
    words[:, 1:] += words[:, :1] == words[:, 1:]  # the first token is a word of its own
    _, targets = mask_tokens(
        tokens,
        is_special_BN=tokens >= VOCABULARY,
        mask_id=MASK,
        ordinary=torch.arange(VOCABULARY),
        generator=torch.Generator().manual_seed(0),
        words_BN=words,
    )
    asked = targets != IGNORED
    is_same_word = words[:, 1:] == words[:, :-1]
    assert (asked[:, 1:] == asked[:, :-1])[is_same_word].all() and not asked[:, 0].any()
    count = asked.sum(1).double()
    assert (count >= 1).all()
    assert abs(float(count.mean()) - 15) < 5 * float(count.std()) / math.sqrt(num_rows)
