"""Batches of pairs: little padding, a constant number of steps, every pair once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.data.text.token_batches import (
    END,
    MARKS,
    START,
    assert_padded_at_the_end,
    check_pure,
    some_rows,
    without_marks,
)

from mirada.data.text.buckets import token_bounds
from mirada.data.text.pair_batches import PairBatches, pair_evaluation
from mirada.errors import MiradaError

SOURCE, TARGET = some_rows(211, 13, seed=0), some_rows(211, 17, seed=1)


def make(**options) -> PairBatches:
    return PairBatches(SOURCE, TARGET, MARKS, **{"tokens_per_batch": 97, **options})


def test_purity_and_resuming():
    check_pure(make)


def test_every_pair_once_per_epoch_with_its_marks_and_within_the_size():
    batches = make()
    for epoch in (0, 1):
        found = [batches.batch(epoch, step) for step in range(len(batches))]
        assert sorted(torch.cat([batch.rows for batch in found]).tolist()) == list(range(211))
        for batch in found:
            assert batch.inputs.numel() <= 97 and batch.targets.numel() <= 97
            assert_padded_at_the_end(batch.inputs)
            assert_padded_at_the_end(batch.targets)
            for row, source, target in zip(batch.rows.tolist(), batch.inputs, batch.targets, strict=True):
                assert source.tolist()[: len(SOURCE[row]) + 1] == [*SOURCE[row], END]
                assert target.tolist()[: len(TARGET[row]) + 2] == [START, *TARGET[row], END]


def test_padding_is_counted_and_less_than_in_random_order():
    batches = make(tokens_per_batch=499)
    found = list(batches)
    counts = [side for batch in found for side in (batch.inputs, batch.targets)]
    share = sum(int((side == 0).sum()) for side in counts) / sum(side.numel() for side in counts)
    assert batches.padding == pytest.approx(share)
    in_order = [(SOURCE[first : first + 30], TARGET[first : first + 30]) for first in range(0, 211, 30)]
    lengths = [np.array([len(row) for row in side]) for pair in in_order for side in pair]
    random = 1 - sum(length.sum() for length in lengths) / sum(length.max() * len(length) for length in lengths)
    assert batches.padding < 0.6 * random


def test_pairs_of_the_same_lengths_meet_others_in_every_epoch():
    same = PairBatches([[7, 8]] * 53, [[9]] * 53, MARKS, tokens_per_batch=30)
    together = [{frozenset(same.batch(epoch, step).rows.tolist()) for step in range(len(same))} for epoch in (0, 1)]
    assert not together[0] & together[1]


def test_long_pairs_are_left_out_of_training_and_cut_in_evaluation():
    batches = make(max_length=11, rows=range(500, 711))
    is_kept = [len(source) <= 10 and len(target) <= 9 for source, target in zip(SOURCE, TARGET, strict=True)]
    assert batches.num_left_out == 211 - sum(is_kept) > 0
    seen = torch.cat([batch.rows for batch in batches]).tolist()
    assert sorted(seen) == [500 + row for row in range(211) if is_kept[row]]
    found = list(pair_evaluation(SOURCE, TARGET, MARKS, tokens_per_batch=97, max_length=11))
    assert sorted(torch.cat([batch.rows for batch in found]).tolist()) == list(range(211))
    for batch in found:
        assert max(batch.inputs.shape[1], batch.targets.shape[1]) <= 11
        assert (batch.inputs == END).sum() == (batch.targets == END).sum() == len(batch.rows)
        for row, source, target in zip(batch.rows.tolist(), batch.inputs, batch.targets, strict=True):
            assert (without_marks(source), without_marks(target)) == (SOURCE[row][:10], TARGET[row][:9])


def test_evaluation_is_fixed_and_keeps_all_without_a_limit():
    first, second = (list(pair_evaluation(SOURCE, TARGET, MARKS, tokens_per_batch=97)) for _ in range(2))
    assert [batch.rows.tolist() for batch in first] == [batch.rows.tolist() for batch in second]
    widths = [max(batch.inputs.shape[1], batch.targets.shape[1]) for batch in first]
    assert widths == sorted(widths) and widths[-1] == 19
    assert list(pair_evaluation([], [], MARKS, tokens_per_batch=97)) == []


def test_bounds_by_hand():
    assert token_bounds(np.array([1, 1, 2, 2, 3, 9]), 6).tolist() == [0, 3, 5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 2}, "max_length is 2"),
        ({"tokens_per_batch": 0}, "tokens_per_batch is 0"),
        ({"source": [[5] * 9], "target": [[5]], "max_length": 7}, "0 of 1 pairs"),
        ({"source": [[5]], "target": []}, "1 source and 0 target"),
    ],
)
def test_what_gives_no_batches_is_refused(options, message):
    source, target = options.pop("source", SOURCE), options.pop("target", TARGET)
    with pytest.raises(MiradaError, match=message):
        PairBatches(source, target, MARKS, **{"tokens_per_batch": 97, **options})
