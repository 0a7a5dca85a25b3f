"""Residual paths: identity at zero, a direct way for the gradient, stochastic depth right on average."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from mirada.errors import MiradaError
from mirada.nn import MLP, LayerScale, PostNorm, PreNorm, StochasticDepth, pre_norm, rising_rates

B, N, D = 3, 5, 7
EXACT = {"atol": 1e-9, "rtol": 1e-7}


def tokens() -> torch.Tensor:
    return torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)


def silent_mlp() -> MLP:
    mlp = MLP(D, 11)
    nn.init.zeros_(mlp.contract.weight)
    return mlp


def test_D3_identity_when_F_is_zero():
    x = tokens()
    assert torch.equal(PreNorm(silent_mlp(), nn.LayerNorm(D)).double()(x), x)
    norm = nn.LayerNorm(D).double()
    torch.testing.assert_close(PostNorm(silent_mlp().double(), norm)(x), norm(x), **EXACT)


def test_D3_gradient_is_the_identity_plus_that_of_F():
    x, direction = tokens(), torch.randn(B, N, D, dtype=torch.float64)
    block = PreNorm(MLP(D, 11), nn.LayerNorm(D)).double()
    (through_block,) = torch.autograd.grad(block(x), x, direction)
    (through_branch,) = torch.autograd.grad(block.inner(block.norm(x)), x, direction)
    torch.testing.assert_close(through_block, direction + through_branch, **EXACT)


def test_D4_D5_formulas():
    x, norm, inner, branch = tokens(), nn.LayerNorm(D).double(), MLP(D, 11).double(), LayerScale(D, 0.25).double()
    torch.testing.assert_close(PreNorm(inner, norm, branch)(x), x + 0.25 * inner(norm(x)), **EXACT)
    torch.testing.assert_close(PostNorm(inner, norm, branch)(x), norm(x + 0.25 * inner(x)), **EXACT)


def test_wrapping_makes_a_norm_and_a_branch_for_each_sublayer():
    wrap = pre_norm(lambda: nn.LayerNorm(D), lambda: LayerScale(D))
    one, other = wrap(MLP(D, 11)), wrap(MLP(D, 11))
    assert one.norm is not other.norm and one.branch is not other.branch
    assert set(one.state_dict()) == {
        *("norm.weight", "norm.bias", "branch.weight", "inner.expand.weight", "inner.expand.bias"),
        *("inner.contract.weight", "inner.contract.bias"),
    }


def gradient_at_first_layer(depth: int, wrap) -> float:
    torch.manual_seed(0)
    first = torch.randn(64, 32, requires_grad=True)
    model = nn.Sequential(*(wrap(nn.Sequential(nn.Linear(32, 32), nn.Tanh())) for _ in range(depth)))
    out = model(first)
    (gradient,) = torch.autograd.grad(out, first, torch.randn_like(out) / out.numel() ** 0.5)
    return gradient.norm().item()


def test_D6_depth_sweep_of_the_gradient_with_and_without_residual():
    depths = (2, 4, 8, 16, 32)
    plain = [gradient_at_first_layer(depth, lambda inner: inner) for depth in depths]
    residual = [gradient_at_first_layer(depth, pre_norm(lambda: nn.LayerNorm(32))) for depth in depths]
    assert all(deep < shallow / 2 for shallow, deep in itertools.pairwise(plain)), plain
    assert plain[-1] < 1e-5 * plain[0], plain
    assert max(residual) / min(residual) < 5, residual


def test_stochastic_depth_keeps_or_drops_whole_samples():
    rate = 0.3
    x = torch.ones(4_001, 2, 3)
    out = StochasticDepth(rate)(x)
    assert torch.equal(out.amin((1, 2)), out.amax((1, 2)))
    kept = out[:, 0, 0] > 0
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 1 / 0.7))
    assert kept.float().mean().item() == pytest.approx(0.7, abs=0.03)


def test_stochastic_depth_expectation_is_the_input():
    x = torch.randn(7, 3)
    layer = StochasticDepth(0.4)
    mean = torch.stack([layer(x) for _ in range(20_000)]).mean(0)
    torch.testing.assert_close(mean, x, atol=0.05, rtol=0.03)


def test_stochastic_depth_does_nothing_in_evaluation_or_at_rate_zero():
    x = torch.randn(B, N, D)
    assert StochasticDepth(0.9).eval()(x) is x
    assert StochasticDepth(0.0)(x) is x
    for rate in (-0.1, 1.0):
        with pytest.raises(MiradaError, match=f"rate={rate}"):
            StochasticDepth(rate)


def test_stochastic_depth_rises_with_the_layer():
    assert rising_rates(0.2, 5) == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert rising_rates(0.2, 1) == [0.0]


def test_layer_scale_starts_small_and_is_learned():
    scale, x = LayerScale(D), torch.randn(B, N, D)
    torch.testing.assert_close(scale(x), x * 1e-5)
    scale(x).sum().backward()
    torch.testing.assert_close(scale.weight.grad, x.sum((0, 1)))
