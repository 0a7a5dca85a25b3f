"""A step is timed in the precision in which it will be trained, for one training and for a comparison alike."""

from __future__ import annotations

import pytest
import torch

from mirada.compare.contest import Contest
from mirada.verbs import contest_steps, pace
from mirada.verbs.stages import Watcher

SETTINGS = ("train.optimiser=sgd", "train.clip=0.5", "train.accumulate=3", "augment.strength=none")


@pytest.mark.parametrize(("precision", "dtype"), [("float32", None), ("bfloat16", torch.bfloat16)])
def test_entrants_are_timed_in_their_precision(precision, dtype, monkeypatch):
    asked = []

    def timed(model, task, batches, device, *, autocast, **how) -> float:
        with autocast():
            asked.append((torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None, how))
        return 0.5

    monkeypatch.setattr(pace, "seconds_per_step", timed)
    contest = Contest("digits", ("cnn:nano",), 1, (*SETTINGS, f"train.precision={precision}"), minutes=1.0)
    (found,) = contest_steps.measure_steps(contest, Watcher()).values()
    assert found["steps"] == 120
    assert [used for used, _ in asked] == [dtype] * contest_steps.ROUNDS
    how = asked[0][1]
    assert (how["optimiser"], how["clip"], how["accumulate"]) == ("sgd", 0.5, 3)
