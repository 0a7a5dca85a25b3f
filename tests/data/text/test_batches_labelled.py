"""Texts with classes."""

from __future__ import annotations

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

from mirada.data.text.buckets import pooled_order
from mirada.data.text.labelled_batches import LabelledBatches, labelled_evaluation
from mirada.errors import MiradaError

TEXTS = some_rows(103, 17)
LABELS = [row % 3 for row in range(103)]


def make(**options) -> LabelledBatches:
    return LabelledBatches(TEXTS, LABELS, MARKS, **{"batch_size": 7, **options})


def test_purity_and_resuming():
    check_pure(make)


def test_texts_with_marks_and_their_classes():
    batches = make(max_length=13, rows=range(200, 303))
    assert len(batches) == 103 // 7 and batches.num_cut == sum(len(text) > 11 for text in TEXTS) > 0
    seen = []
    for batch in batches:
        assert_padded_at_the_end(batch.inputs)
        assert (batch.inputs[:, 0] == START).all() and ((batch.inputs == END).sum(1) == 1).all()
        rows = (batch.rows - 200).tolist()
        assert [without_marks(row) for row in batch.inputs] == [TEXTS[row][:11] for row in rows]
        assert batch.targets.tolist() == [LABELS[row] for row in rows]
        seen += rows
    assert len(set(seen)) == 98


def test_batches_are_of_similar_lengths_and_of_random_ones_beyond_the_pool():
    length = torch.randint(1, 100, (1024,), generator=torch.Generator().manual_seed(0))
    order = pooled_order(length, 8, seed=0, epoch=0, pool=16)
    assert sorted(order.flatten().tolist()) == list(range(1024))
    spread = length[order].amax(1) - length[order].amin(1)
    assert float(spread.double().mean()) < 100 / 16 * 2
    assert (pooled_order(length, 8, seed=0, epoch=0, pool=1).sort(1).values != order.sort(1).values).any()


def test_balanced_classes():
    rare = LabelledBatches([[7]] * 100, [0] * 90 + [1] * 10, MARKS, batch_size=100, balanced=True)
    assert rare.batch(0, 0).targets.sum() == 50


def test_evaluation_sees_every_text_once():
    found = list(labelled_evaluation(TEXTS, LABELS, MARKS, batch_size=10, max_length=13))
    assert [len(batch.rows) for batch in found] == [10] * 10 + [3]
    rows = torch.cat([batch.rows for batch in found]).tolist()
    assert sorted(rows) == list(range(103)) and max(batch.inputs.shape[1] for batch in found) == 13
    assert torch.cat([batch.targets for batch in found]).tolist() == [LABELS[row] for row in rows]
    assert list(labelled_evaluation([], [], MARKS, batch_size=10)) == []


def test_few_texts_are_one_batch_and_none_are_refused():
    assert [len(batch.rows) for batch in LabelledBatches(TEXTS[:5], LABELS[:5], MARKS, batch_size=7)] == [5]
    with pytest.raises(MiradaError, match="0 training texts"):
        LabelledBatches([], [], MARKS, batch_size=7)
    with pytest.raises(MiradaError, match="batch_size is 0"):
        make(batch_size=0)
