"""What every kind of batches must do, and small rows of tokens to do it with."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch

from mirada.data.batches import Batch
from mirada.data.text.numbered_batches import NumberedBatches

PAD, UNKNOWN, START, END, MASK = range(5)
MARKS = SimpleNamespace(pad=PAD, start=START, end=END)


def some_rows(count: int, longest: int, seed: int = 0, shortest: int = 0) -> list[list[int]]:
    """Row r begins with the token 1000 + r, if it has any."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator).tolist()
    return [[1000 + row, *range(11, 10 + length)][:length] for row, length in enumerate(lengths)]


def without_marks(row: torch.Tensor) -> list[int]:
    return [token for token in row.tolist() if token > MASK]


def assert_same(first: list[Batch], second: list[Batch]) -> None:
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.targets, other.targets)
        assert torch.equal(one.rows, other.rows)


def assert_padded_at_the_end(token_BN: torch.Tensor) -> None:
    """No token behind padding, and no column of padding alone."""
    is_pad = token_BN == PAD
    assert token_BN.dtype == torch.int64
    assert not (is_pad[:, :-1] & ~is_pad[:, 1:]).any()
    assert not is_pad[:, -1].all()


def check_pure(make: Callable[..., NumberedBatches]) -> None:
    """Iterating gives batch(epoch, step); it can go on from any position; other seeds and epochs differ."""
    straight = make(seed=3)
    whole = [batch for _ in range(2) for batch in straight]
    steps = len(straight)
    assert steps > 2 and len(whole) == 2 * steps and (straight.epoch, straight.step) == (2, 0)
    torch.manual_seed(1)  # the global state does not matter
    anew = make(seed=3)
    assert_same(whole, [anew.batch(epoch, step) for epoch in (0, 1) for step in range(steps)])
    assert_same([whole[1]], [anew.batch(0, 1)])
    resumed = make(seed=3)
    resumed.epoch, resumed.step = 0, steps - 1
    assert_same(whole[steps - 1 :], [batch for _ in range(2) for batch in resumed])
    assert not same_rows(whole[:steps], whole[steps:])
    assert not same_rows(whole[:steps], list(make(seed=4)))


def same_rows(first: list[Batch], second: list[Batch]) -> bool:
    return all(torch.equal(one.rows, other.rows) for one, other in zip(first, second, strict=True))
