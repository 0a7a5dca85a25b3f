"""A step is timed in the precision in which it will be trained, for one training and for a comparison alike."""

from __future__ import annotations

import pytest
import torch

from mirada.compare.contest import Contest
from mirada.verbs import contest_steps, pace
from mirada.verbs.stages import Watcher
from mirada.verbs.train import plan, train

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


def test_entrants_are_decided_once_for_all_seeds(monkeypatch):
    def decided(config, learner, says):
        return config.model_copy(update={"train": config.train.model_copy(update={"precision": "bfloat16"})})

    monkeypatch.setattr(contest_steps, "with_precision", decided)
    entrants = ("vit:nano train.precision=auto", "cnn:nano")
    found = contest_steps.measure_steps(Contest("digits", entrants, 2, ("train.steps=3",)), Watcher())
    assert [row.get("settings") for row in found.values()] == [["train.precision=bfloat16", "train.fused=True"], None]
    assert [row["steps"] for row in found.values()] == [3, 3]


@pytest.mark.parametrize(("asked", "of_the_baseline"), [("auto", "auto"), ("bfloat16", None), ("float32", None)])
def test_auto_is_asked_for_the_baseline_too(asked, of_the_baseline):
    config, _ = plan({"data": {"source": "digits"}, "train": {"precision": asked}}, None, Watcher())
    assert config.baseline.precision == of_the_baseline


def test_trainings_in_one_process_may_differ_in_precision(tmp_path):
    settings = ["train.steps=1", "train.evaluations=1", "baseline.name=none", "system.arguments.depth=1"]
    for precision in ("bfloat16", "float32"):
        run = train("digits", settings=[*settings, f"train.precision={precision}"], out=tmp_path / precision)
        assert run.is_finished
