"""Words with a true neighbour and others: near ones more often, others ∝ count^¾."""

from __future__ import annotations

import math
from itertools import chain

import pytest
import torch
from tests.data.text.token_batches import check_pure

from mirada.data.text.skipgram_batches import SkipgramBatches, skipgram_evaluation, taken_share
from mirada.errors import MiradaError

# Text r has the tokens 10 r + 5, 10 r + 6 …, so that a token tells its text and its place.
TEXTS = [list(range(10 * row + 5, 10 * row + 5 + row % 7)) for row in range(53)]
COUNTS = torch.bincount(torch.tensor([*chain(*TEXTS)]), minlength=541)


def make(**options) -> SkipgramBatches:
    return SkipgramBatches(TEXTS, COUNTS, **{"batch_size": 11, "window": 3, "num_negatives": 2, **options})


def test_purity_and_resuming():
    check_pure(make)


def test_neighbours_are_of_the_same_text_within_the_window():
    found = list(make(subsample=0.0))
    for batch in found:
        assert batch.inputs.shape == (11,) and batch.targets.shape == (11, 3)
        distance = batch.targets[:, 0] - batch.inputs
        assert ((distance != 0) & (distance.abs() <= 3)).all()
        assert torch.equal((batch.inputs - 5) // 10, batch.rows) and torch.equal(
            (batch.targets[:, 0] - 5) // 10, batch.rows
        )
    words = sum(len(text) for text in TEXTS if len(text) > 1)
    middle = torch.cat([batch.inputs for batch in found])
    assert len(found) == words // 11 and len(middle.unique()) == len(middle)


def shares_agree(found: torch.Tensor, expected: torch.Tensor) -> bool:
    count = int(found.sum())
    sigma = (expected * (1 - expected) / count).sqrt()
    return bool(((found / count - expected).abs() <= 4 * sigma).all())


def test_near_words_are_taken_more_often():
    """With a window of 3: distance 1, 2, 3 in the ratio 3 : 2 : 1."""
    line = [list(range(5, 5 + 10_007))]
    batches = SkipgramBatches(line, torch.ones(10_012), batch_size=10_007, window=3, subsample=0.0)
    batch = batches.batch(0, 0)
    is_inner = (batch.inputs > 8) & (batch.inputs < 10_007)
    distance = (batch.targets[:, 0] - batch.inputs)[is_inner]
    found = torch.stack([(distance == offset).sum() for offset in (-3, -2, -1, 1, 2, 3)]).double()
    assert shares_agree(found, torch.tensor([1, 2, 3, 3, 2, 1]).double() / 12)


def test_others_are_drawn_by_their_count_to_the_power_of_three_quarters():
    counts = torch.tensor([0, 0, 0, 0, 0, 1, 16, 81, 0, 625])
    batches = SkipgramBatches([[5, 6] * 5003], counts, batch_size=10_006, num_negatives=3)
    found = torch.bincount(batches.batch(0, 0).targets[:, 1:].flatten(), minlength=10).double()
    expected = torch.tensor([0, 0, 0, 0, 0, 1, 8, 27, 0, 125]).double() / 161
    assert shares_agree(found, expected)


def test_frequent_words_are_taken_less_often():
    counts = torch.tensor([0, 900, 100])
    assert taken_share(counts, 0.1).tolist() == pytest.approx([1, math.sqrt(0.1 / 0.9), 1])
    batches = SkipgramBatches([[1] * 900, [2] * 100], counts, batch_size=1000, subsample=0.1)
    share = float((batches.batch(0, 0).inputs == 1).double().mean())
    assert share == pytest.approx(300 / 400, abs=0.01)


def test_evaluation_takes_every_word_once():
    runs = [list(skipgram_evaluation(TEXTS, COUNTS, batch_size=11, window=3)) for _ in range(2)]
    assert torch.cat([batch.inputs for batch in runs[0]]).tolist() == [
        *chain(*(text for text in TEXTS if len(text) > 1))
    ]
    assert all(torch.equal(one.targets, other.targets) for one, other in zip(*runs, strict=True))


def test_texts_without_neighbours_are_refused():
    with pytest.raises(MiradaError, match="none of 2 texts has two words"):
        SkipgramBatches([[5], []], COUNTS, batch_size=11)
    with pytest.raises(MiradaError, match="window is 0"):
        make(window=0)
