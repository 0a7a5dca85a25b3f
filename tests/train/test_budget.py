"""How long a step takes, on a machine where others come and go."""

import time

import pytest
import torch
from torch import nn

from mirada.data.batches import Batch
from mirada.train import budget
from mirada.train.budget import MOST_SECONDS, SECONDS, first_batches, is_enough, mean_of_typical, seconds_per_step


class Uneven:
    """Every other batch takes long."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.epoch, self.step = seconds, 3, 5

    def __len__(self) -> int:
        return 6

    def __iter__(self):
        while self.step < len(self):
            self.step += 1
            yield self.batch(self.epoch, self.step - 1)
        self.epoch, self.step = self.epoch + 1, 0

    def batch(self, epoch: int, step: int) -> Batch:
        time.sleep(self.seconds * (step % 2))
        return Batch(torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([epoch, step]))


def test_two_rounds_must_agree():
    calm, disturbed = [0.1, 0.3], [0.9, 0.3]
    assert not is_enough([calm], MOST_SECONDS)
    assert not is_enough([calm, calm], SECONDS / 2) and is_enough([calm, calm], SECONDS)
    assert not is_enough([calm, disturbed], SECONDS) and is_enough([calm, disturbed], MOST_SECONDS)
    assert is_enough([disturbed, calm, calm], SECONDS)


def test_a_neighbour_does_not_decide_but_what_steps_are_by_nature_does():
    assert mean_of_typical([[0.1, 0.3, 2.0], [5.0, 0.3, 0.2]]) == pytest.approx(0.2)
    assert mean_of_typical([[0.1], [0.3], [0.2], [9.0], [0.2]]) == pytest.approx(0.2)


def test_the_position_is_left_alone():
    batches = Uneven()
    assert [batch.rows.tolist() for batch in first_batches(batches, 2)] == [[0, 0], [0, 1]]
    assert (batches.epoch, batches.step) == (3, 5)


class Classes:
    def loss(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)


def test_steps_are_timed_as_they_will_be(monkeypatch):
    """Whole groups of batches, in the precision of the training, with its limit of the gradient."""
    monkeypatch.setattr(budget, "SECONDS", 0.0)
    monkeypatch.setattr(budget, "MIN_STEPS", 1)
    batches, counts, seen = Uneven(), [], []
    batches.group = 3
    monkeypatch.setattr(budget, "first_batches", lambda b, count: counts.append(count) or first_batches(b, count))
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, largest: seen.append(largest))
    model = nn.Linear(3, 2)

    def objective(model, inputs, targets):
        seen.append(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None)
        outputs = model(inputs)
        assert outputs.dtype == torch.float32  # as Accelerate has it
        return Classes().loss(outputs, targets)

    how = {"objective": objective, "clip": 0.5, "autocast": lambda: torch.autocast("cpu", torch.bfloat16)}
    seconds_per_step(model, Classes(), batches, torch.device("cpu"), **how)
    assert counts[:2] == [1, 2] and set(counts[2:]) == {3}
    assert set(seen) == {torch.bfloat16, 0.5}


def test_slow_and_fast_batches_count_alike(monkeypatch):
    monkeypatch.setattr(budget, "SECONDS", 0.0)
    batches = Uneven(0.05)
    found = seconds_per_step(nn.Linear(3, 2), Classes(), batches, torch.device("cpu"), accumulate=2)
    assert 0.05 <= found < 0.5  # half of the batches take 0.05, and two make a step
    assert (batches.epoch, batches.step) == (3, 5)
