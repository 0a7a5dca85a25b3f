"""H3, H5: learning rates and updates equal their formulas."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from mirada.train.average import FIRST_STEPS, MovingAverage
from mirada.train.optimiser import make_optimiser, parameter_groups
from mirada.train.schedule import learning_rate, noam_peak


def test_H5_noam_equals_the_paper_and_peaks_at_the_warm_up():
    def rate(t: int) -> float:
        return learning_rate(t - 1, peak=noam_peak(512, 4000), total=10**6, warmup=4000, schedule="noam")

    golden = {1: 1.746928e-7, 100: 1.746928e-5, 4000: 6.987712e-4, 100_000: 1.397542e-4}
    for t, expected in golden.items():
        assert rate(t) == pytest.approx(expected, rel=1e-6)
    assert max(range(1, 8000), key=rate) == 4000


def test_cosine_and_linear_warm_up_then_fall_to_zero():
    for schedule in ("cosine", "linear"):
        rates = [learning_rate(t, peak=3.0, total=101, warmup=11, schedule=schedule) for t in range(101)]
        assert rates[0] == pytest.approx(3 / 11) and rates[10] == pytest.approx(3.0)
        assert all(a >= b for a, b in pairwise(rates[10:]))
        assert 0 < rates[-1] < 0.05
    assert learning_rate(50, peak=3.0, total=101, warmup=11, schedule="constant") == 3.0


def test_poly_falls_by_the_power_of_deeplab():
    rates = [learning_rate(t, peak=3.0, total=101, warmup=11, schedule="poly") for t in range(101)]
    assert rates[0] == pytest.approx(3 / 11) and rates[11] == pytest.approx(3.0)
    assert rates[56] == pytest.approx(3 * 0.5**0.9) and rates[100] == pytest.approx(3 * (1 / 90) ** 0.9)


def test_H3_one_sgd_step_equals_the_hand_update():
    layer = nn.Linear(3, 2)
    x = torch.randn(5, 3)
    before = layer.weight.detach().clone()
    optimiser = make_optimiser("sgd", layer, learning_rate=0.1, weight_decay=0.0, betas=(0.0001, 0.9))
    layer(x).sum().backward()
    gradient = layer.weight.grad.clone()
    optimiser.step()
    torch.testing.assert_close(layer.weight, before - 0.1 * gradient * (1 + 0.0001))


def test_biases_norms_positions_and_tokens_are_not_decayed():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(3, 5), nn.LayerNorm(5)
            self.position = nn.Parameter(torch.zeros(7, 5))
            self.class_token = nn.Parameter(torch.zeros(1, 5))

    model = Model()
    decayed, free = parameter_groups(model, 0.05)
    assert [p.shape for p in decayed["params"]] == [model.linear.weight.shape]
    assert len(free["params"]) == 5 and free["weight_decay"] == 0


def test_moving_average_equals_the_recursion():
    model = nn.Linear(2, 1, bias=False)
    average = MovingAverage(model, 0.9)
    expected = model.weight.detach().clone()
    for step in range(FIRST_STEPS):
        with torch.no_grad():
            model.weight += 1.0
        average.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach()
    torch.testing.assert_close(average.module.weight, expected)


def test_later_it_follows_once_in_four_steps_as_far_as_in_four():
    model = nn.Linear(2, 1, bias=False)
    average = MovingAverage(model, 0.9)
    with torch.no_grad():
        model.weight += 1.0
    distances = []
    for step in range(FIRST_STEPS, FIRST_STEPS + 9):
        average.update(step)
        distances.append(float((model.weight - average.module.weight).detach().mean()))
    expected = [1.0] * 3 + [0.9**4] * 4 + [0.9**8] * 2
    assert distances == pytest.approx(expected, rel=1e-5)
