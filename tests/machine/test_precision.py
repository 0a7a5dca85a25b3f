"""The guard picks by what a trial says; most trials here are given, not timed."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from mirada.config.load import resolve
from mirada.machine import precision as guard
from mirada.machine.precision import Trial, in_turns, try_out
from mirada.verbs import pace
from mirada.verbs.pace import Learner, with_precision


class OneBatch:
    """Batches, of which the first is asked for; where they were is where they are."""

    epoch, step = 3, 5

    def __iter__(self):
        assert (self.epoch, self.step) == (0, 0)
        yield SimpleNamespace(inputs=torch.randn(7, 5), targets=torch.arange(7) % 3)


def learner(model: nn.Module | None = None) -> Learner:
    def objective(model, inputs, targets):
        return nn.functional.cross_entropy(model(inputs).float(), targets)

    return Learner(model or nn.Linear(5, 3), None, OneBatch(), torch.device("cpu"), objective)


def chosen(precision: str, trial: Trial):
    heard: list[str] = []
    given: list = []

    def try_them(shapes, step):
        given.extend(shapes)
        return trial

    config = with_precision(resolve({"train": {"precision": precision}}), learner(), heard.append, try_them)
    return config.train, heard, given


SLOW = Trial(float32=1e-3, bfloat16=14e-3, fused=2e-3, foreach=8e-3)
FAST = Trial(float32=1e-3, bfloat16=0.4e-3, fused=8e-3, foreach=2e-3)
NOISE = Trial(float32=1e-3, bfloat16=0.97e-3, fused=2e-3, foreach=1.95e-3)


@pytest.mark.parametrize(
    ("trial", "precision", "fused"), [(SLOW, "float32", True), (FAST, "bfloat16", False), (NOISE, "float32", True)]
)
def test_auto_takes_what_is_clearly_faster(trial, precision, fused):
    train, said, shapes = chosen("auto", trial)
    assert (train.precision, train.fused) == (precision, fused)
    assert len(said) == 1
    assert shapes == [(3, 5), (3,)]


@pytest.mark.parametrize(("trial", "is_told"), [(SLOW, True), (FAST, False), (NOISE, False)])
def test_who_asks_for_bfloat16_gets_it_and_is_told_where_it_is_slow(trial, is_told, monkeypatch):
    monkeypatch.setattr(pace, "try_products", lambda shapes: trial)
    train, said, shapes = chosen("bfloat16", FAST)
    assert train.precision == "bfloat16"
    assert not shapes  # no step is tried where nothing is decided
    assert ["14.0 times slower" in sentence for sentence in said] == [True] * is_told


def test_the_sentence_tells_the_way_of_updating_first_that_is_taken():
    assert "updated fused (2 ms, otherwise 8 ms)" in chosen("auto", SLOW)[1][0]
    assert "updated each by itself (2 ms, otherwise 8 ms)" in chosen("auto", FAST)[1][0]


def test_float32_is_not_tried():
    train, said, shapes = chosen("float32", FAST)
    assert train.precision == "float32"
    assert not said
    assert not shapes


SHAPES = [torch.Size((31, 17)), torch.Size((31,)), torch.Size((5, 3, 7, 7))]


def test_a_real_trial_measures_all_four():
    found = try_out(SHAPES, lambda precision: None)
    assert all(seconds > 0 for seconds in found.to_dict().values())


def in_time(monkeypatch, **product: float) -> None:
    """As if products took so long."""
    real = guard.in_turns
    monkeypatch.setattr(guard, "in_turns", lambda ways, *limit: real(ways, *limit) | (product if not limit else {}))


def pausing(**seconds: float):
    return lambda precision: time.sleep(seconds[str(precision).removeprefix("torch.")])


def test_the_step_decides_and_not_the_product(monkeypatch):
    in_time(monkeypatch, float32=1.0, bfloat16=0.5)
    assert try_out(SHAPES, pausing(float32=0.001, bfloat16=0.02)).precision == "float32"
    in_time(monkeypatch, float32=1.0, bfloat16=1.5)
    assert try_out(SHAPES, pausing(float32=0.02, bfloat16=0.001)).precision == "bfloat16"


@pytest.mark.parametrize(("shapes", "sides"), [(SHAPES, (256, 256)), ([torch.Size((509, 127, 3, 3))], (509, 1143))])
def test_the_product_is_of_the_largest_matrix_or_kernel(shapes, sides, monkeypatch):
    seen = set()
    monkeypatch.setattr(guard.F, "linear", lambda rows, weight: seen.add(tuple(weight.shape)))
    guard.try_products(shapes)
    assert seen == {sides}


def test_no_step_is_tried_where_products_are_hopeless(monkeypatch):
    in_time(monkeypatch, float32=1.0, bfloat16=14.0)
    found = try_out(SHAPES, lambda precision: pytest.fail("a step of 14 times the time"))
    assert found.slower == 14 and found.precision == "float32"


def test_slow_ways_are_tried_twice_and_the_first_time_does_not_count():
    pauses = iter([0.05, 0.01, 0.02])
    found = in_turns({"way": lambda: time.sleep(next(pauses))}, seconds=0.0)
    assert 0.01 <= found["way"] < 0.02
    assert next(pauses, None) is None


def test_the_step_on_trial_computes_gradients_in_both_precisions_and_leaves_the_model_as_it_is(monkeypatch):
    in_time(monkeypatch, float32=1.0, bfloat16=1.0)
    seen = []

    class Watched(nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            seen.append((out.dtype, out.requires_grad))
            return out

    answered = set()

    def objective(model, inputs, targets):
        outputs = model(inputs)
        answered.add(outputs.dtype)
        return nn.functional.cross_entropy(outputs, targets)

    model = Watched(5, 3).eval()
    before = model.weight.clone()
    given = replace(learner(model), objective=objective)
    config = with_precision(resolve({"train": {"precision": "auto"}}), given, lambda sentence: None)
    assert config.train.precision in ("float32", "bfloat16")
    assert set(seen) == {(torch.float32, True), (torch.bfloat16, True)}
    assert answered == {torch.float32}  # as Accelerate has it
    assert torch.equal(model.weight, before) and model.weight.grad is None and not model.training
    assert (given.batches.epoch, given.batches.step) == (3, 5)
