"""Heads of a field equal the distributions they are named after, have the right gradients, and know ensembles."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import NegativeBinomial, Normal

from mirada.errors import MiradaError
from mirada.tasks.field import HEADS, Field, field_task
from mirada.tasks.image import saved_task

B, M = 31, 5
MEAN, STD = 40.0, 15.0


def task(head):
    return Field(head, "richness", MEAN, STD)


def outputs_of(head, *shape):
    return torch.randn(*shape, task(head).num_outputs)


def targets():
    return torch.randint(0, 90, (B,)).float()


def test_gaussian_loss_is_the_log_density_of_standardised_targets():
    field, outputs, y = task("gaussian"), outputs_of("gaussian", B), targets()
    std = torch.nn.functional.softplus(outputs[:, 1]) + 1e-3
    expected = -Normal(outputs[:, 0], std).log_prob((y - MEAN) / STD).mean() - math.log(2 * math.pi) / 2
    torch.testing.assert_close(field.loss(outputs, y), expected)
    torch.testing.assert_close(field.values(outputs), outputs[:, 0] * STD + MEAN)
    torch.testing.assert_close(field.scale(outputs), std * STD)


def test_gaussian_bounds_are_quantiles_of_the_normal():
    low, high = task("gaussian").bounds(torch.tensor([[0.5, 0.0]]), 0.9)
    std = (math.log(2) + 1e-3) * STD
    assert (low.item(), high.item()) == pytest.approx((47.5 - 1.644854 * std, 47.5 + 1.644854 * std), rel=1e-5)


@pytest.mark.parametrize("dispersion", [-20.0, -3.0, 0.0, 4.0])
def test_count_loss_is_that_of_the_negative_binomial(dispersion):
    field, y = task("count"), targets()
    outputs = torch.stack([torch.randn(B), torch.full((B,), dispersion)], dim=1)
    mean, variance = field.values(outputs).double(), field.scale(outputs).double().square()
    size = mean.square() / (variance - mean)
    scipy_s = stats.nbinom.logpmf(y.numpy(), size.numpy(), (size / (size + mean)).numpy())
    torch_s = NegativeBinomial(size, logits=(mean / size).log()).log_prob(y.double())
    np.testing.assert_allclose(scipy_s, torch_s, rtol=1e-6)
    assert field.loss(outputs, y).item() == pytest.approx(-scipy_s.mean(), rel=2e-4)


def test_count_starts_at_the_mean_and_dispersion_of_the_training_rows_and_is_never_negative():
    field = task("count")
    start = torch.zeros(1, 2)
    assert field.values(start).item() == pytest.approx(MEAN, rel=1e-5)
    assert field.scale(start).item() == pytest.approx(STD, rel=1e-2)
    far = torch.tensor([[-300.0, -300.0], [-30.0, 30.0], [300.0, 0.0]])
    assert (field.values(far) > 0).all() and field.values(far)[2].item() == pytest.approx(300 * STD + MEAN, rel=0.02)
    assert field.loss(far, torch.tensor([0.0, 7.0, 7.0])).isfinite()
    assert field.lowest == 0


def test_count_bounds_are_quantiles_of_the_negative_binomial():
    field, outputs = task("count"), outputs_of("count", B)
    mean, variance = (x.double().numpy() for x in (field.values(outputs), field.scale(outputs).square()))
    low, high = field.bounds(outputs, 0.8)
    law = stats.nbinom(mean**2 / (variance - mean), mean / variance)
    np.testing.assert_array_equal(low, law.ppf(0.1))
    np.testing.assert_array_equal(high, law.ppf(0.9))


def test_quantile_loss_by_hand_and_bounds_that_do_not_cross():
    field = Field("quantile", "t", 0.0, 1.0)
    outputs = torch.tensor([[1.0, math.log(math.e - 1), math.log(math.e**2 - 1)]])  # 0, 1 and 3
    assert [x.item() for x in field.bounds(outputs)] == pytest.approx([0.0, 3.0], abs=1e-6)
    expected = (0.05 * 2.0 + 0.5 * 1.0 + (0.95 - 1) * (2.0 - 3.0)) / 3
    assert field.loss(outputs, torch.tensor([2.0])).item() == pytest.approx(expected)
    wild = 100 * outputs_of("quantile", B)
    low, high = task("quantile").bounds(wild)
    assert (low <= task("quantile").values(wild)).all() and (task("quantile").values(wild) <= high).all()
    wider_low, wider_high = field.bounds(outputs, 0.99)
    ratio = stats.norm.ppf(0.995) / stats.norm.ppf(0.95)
    assert (wider_low.item(), wider_high.item()) == pytest.approx((1 - ratio, 1 + 2 * ratio))


def test_quantile_loss_is_least_at_the_quantiles():
    field = Field("quantile", "t", 0.0, 1.0)
    y = torch.from_numpy(stats.expon.ppf((np.arange(999) + 0.5) / 999)).float()
    low, middle, high = stats.expon.ppf([0.05, 0.5, 0.95])
    best = torch.tensor([middle, *np.log(np.expm1([middle - low, high - middle]))], dtype=torch.float32)

    def loss(outputs):
        return field.loss(outputs.expand(len(y), 3), y).item()

    for k in range(3):
        for step in (-0.1, 0.1):
            assert loss(best + step * torch.eye(3)[k]) > loss(best)


def test_rmse_is_the_root_of_the_mean_square_and_has_a_gradient_at_zero():
    field, y = Field("rmse", "t", 0.0, 1.0), torch.tensor([1.0, 2.0, 5.0])
    outputs = torch.tensor([[1.0], [4.0], [4.0]])
    assert field.loss(outputs, y).item() == pytest.approx(math.sqrt(5 / 3))
    exact = y[:, None].clone().requires_grad_()
    field.loss(exact, y).backward()
    assert exact.grad.tolist() == [[0], [0], [0]]
    assert [x.tolist() for x in field.bounds(outputs)] == [[1, 4, 4], [1, 4, 4]]
    assert field.scale(outputs).tolist() == [1, 1, 1]


@pytest.mark.parametrize("head", HEADS)
def test_gradients(head):
    field, y = task(head), torch.randint(0, 90, (7,)).double()
    outputs = torch.randn(7, 3, field.num_outputs, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda o: field.loss(o, y), (outputs,))


@pytest.mark.parametrize("head", HEADS)
def test_an_ensemble_is_the_mean_of_its_members(head):
    field, outputs, y = task(head), outputs_of(head, B, M), targets()
    alone = [outputs[:, m] for m in range(M)]
    torch.testing.assert_close(field.loss(outputs, y), torch.stack([field.loss(o, y) for o in alone]).mean())
    values = torch.stack([field.values(o) for o in alone], dim=1)
    torch.testing.assert_close(field.values(outputs), values.mean(1))
    torch.testing.assert_close(field.spread(outputs), values.std(1, correction=0))
    assert field.spread(alone[0]).tolist() == [0] * B
    same = alone[0][:, None].expand(B, M, -1)
    for ours, one in zip(field.bounds(same), field.bounds(alone[0]), strict=True):
        torch.testing.assert_close(ours, one)


@pytest.mark.parametrize("head", ["gaussian", "count"])
def test_disagreement_of_members_widens_the_bounds(head):
    field, outputs = task(head), outputs_of(head, 1, M)
    within = torch.stack([field.scale(outputs[:, m]) for m in range(M)]).square().mean()
    torch.testing.assert_close(field.scale(outputs).square(), (within + field.spread(outputs).square()))


def test_result_has_scores_an_interval_and_the_coverage_of_the_bounds():
    field, y = task("gaussian"), targets()
    outputs = torch.stack([(y - MEAN) / STD + 0.3 * torch.randn(B), torch.full((B,), -1.0)], dim=1)
    rows, blocks = field.result(outputs, y), field.result(outputs, y, np.arange(B) // 4)
    assert rows["metric"] == "r2" and rows["value"] == rows["r2"] > 0.9 and rows["n"] == B
    assert rows["low"] < rows["value"] < rows["high"]
    assert rows["interval"] == "bootstrap over samples, 95 %" and blocks["interval"] == "bootstrap over blocks, 95 %"
    assert (blocks["low"], blocks["high"]) != (rows["low"], rows["high"])
    low, high = field.bounds(outputs)
    assert rows["inside_bounds"] == pytest.approx(((low <= y) & (y <= high)).double().mean().item())
    assert field.quick(outputs, y) == {name: rows[name] for name in ("loss", "r2", "mae")}


def test_answers_and_targets_are_named_after_the_target():
    field = Field("rmse", "richness", 10.0, 2.0)
    assert field.answers(torch.tensor([[1.5]])) == [{"predicted_richness": 13.0, "low": 13.0, "high": 13.0}]
    ensemble = field.answers(torch.tensor([[[1.0], [2.0]]]))[0]
    assert ensemble["predicted_richness"] == 13 and ensemble["spread"] == 1
    assert ensemble["high"] == pytest.approx(13 + 1.644854, rel=1e-6)
    assert field.named(torch.tensor([7.0])) == [{"target_richness": 7.0}]


@pytest.mark.parametrize("head", HEADS)
def test_a_run_keeps_its_task(head):
    field = field_task(head, "richness", np.array([3.0, 5.0, 10.0]))
    assert (field.mean, field.std) == pytest.approx((6.0, math.sqrt(26 / 3)))
    again = saved_task(field.described())
    outputs, y = outputs_of(head, B), targets()
    assert again.loss(outputs, y) == field.loss(outputs, y)
    torch.testing.assert_close(again.values(outputs), field.values(outputs))
    assert again.described() == field.described()


def test_unfit_heads_and_targets_are_named():
    with pytest.raises(MiradaError, match=r"head 'poisson'.*gaussian, count, quantile, rmse"):
        field_task("poisson", "richness", np.array([1.0]))
    with pytest.raises(MiradaError, match=r"'anomaly' goes down to -2\.5.*'gaussian'"):
        field_task("count", "anomaly", np.array([1.0, -2.5]))


def test_targets_that_do_not_vary_still_train():
    for head in HEADS:
        field = field_task(head, "richness", np.zeros(3))
        assert field.loss(outputs_of(head, 3), torch.zeros(3)).isfinite()
