"""Windows of one long text: random ones for training, all of them for evaluation."""

from __future__ import annotations

import pytest
import torch
from tests.data.text.token_batches import check_pure

from mirada.data.text.stream_batches import StreamBatches, stream_evaluation
from mirada.errors import MiradaError

TOKENS = torch.arange(1009, dtype=torch.int32)


def make(**options) -> StreamBatches:
    return StreamBatches(TOKENS, **{"batch_size": 5, "length": 11, **options})


def test_purity_and_resuming():
    check_pure(make)


def test_windows_and_the_tokens_behind_them():
    batches = make()
    assert len(batches) == 1009 // (5 * 11)
    for batch in batches:
        assert batch.inputs.shape == batch.targets.shape == (5, 11) and batch.inputs.dtype == torch.int64
        assert torch.equal(batch.inputs, batch.rows[:, None] + torch.arange(11))
        assert torch.equal(batch.targets, batch.inputs + 1)


def test_windows_come_from_everywhere():
    short = StreamBatches(TOKENS[:14], batch_size=101, length=11)
    assert len(short) == 1 and set(short.batch(0, 0).rows.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("count", "widths"), [(1009, [7] * 144), (1008, [7] * 143 + [6]), (3, [2]), (1, [])])
def test_evaluation_asks_for_every_token_but_the_first_once(count, widths):
    found = list(stream_evaluation(TOKENS[:count], batch_size=5, length=7))
    assert [len(row) for batch in found for row in batch.inputs] == widths
    asked = [token for batch in found for token in batch.targets.flatten().tolist()]
    assert asked == list(range(1, count))
    assert all(torch.equal(batch.targets, batch.inputs + 1) for batch in found)


def test_a_text_shorter_than_a_window_is_refused():
    with pytest.raises(MiradaError, match="11 tokens, expected more than the 11"):
        StreamBatches(TOKENS[:11], batch_size=5, length=11)
    with pytest.raises(MiradaError, match="length is 0"):
        make(length=0)
