"""MLPs: the published formulas, with every activation, one token at a time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from mirada.nn import MLP, GatedMLP, QuickGELU

B, N, D, HIDDEN = 2, 5, 7, 11
EXACT = {"atol": 1e-9, "rtol": 1e-7}


def tokens() -> torch.Tensor:
    return torch.randn(B, N, D, dtype=torch.float64)


def normal_cdf(x: torch.Tensor) -> torch.Tensor:
    return (1 + torch.erf(x / math.sqrt(2))) / 2


ACTIVATIONS = {
    "ReLU": (nn.ReLU(), lambda x: x.clamp(min=0)),
    "GELU, exact": (nn.GELU(), lambda x: x * normal_cdf(x)),
    "GELU, tanh": (
        nn.GELU("tanh"),
        lambda x: x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "quick GELU": (QuickGELU(), lambda x: x / (1 + torch.exp(-1.702 * x))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_G2_mlp_equals_formula(name):
    module, g = ACTIVATIONS[name]
    mlp, x = MLP(D, HIDDEN, module).double(), tokens()
    nn.init.normal_(mlp.expand.bias)
    w1, b1, w2, b2 = mlp.parameters()
    torch.testing.assert_close(mlp(x), g(x @ w1.T + b1) @ w2.T + b2, **EXACT)


def test_G2_the_three_GELUs_differ():
    x = torch.linspace(-3, 3, 61)
    exact, tanh, quick = nn.GELU()(x), nn.GELU("tanh")(x), QuickGELU()(x)
    assert 1e-5 < (exact - tanh).abs().max() < 1e-3 < (exact - quick).abs().max() < 0.03


@pytest.mark.parametrize("make", [MLP, GatedMLP])
def test_G2_position_wise(make):
    mlp, x, order = make(D, HIDDEN).double(), tokens(), torch.randperm(N)
    torch.testing.assert_close(mlp(x[:, order]), mlp(x)[:, order], **EXACT)
    torch.testing.assert_close(mlp(x)[:, 3], mlp(x[:, 3]), **EXACT)


@pytest.mark.parametrize(
    ("module", "g"), [(None, lambda x: x * torch.sigmoid(x)), (nn.GELU(), lambda x: x * normal_cdf(x))]
)
def test_gated_mlp_equals_formula_of_SwiGLU_and_GEGLU(module, g):
    mlp, x = GatedMLP(D, HIDDEN, module, out_dim=13).double(), tokens()
    w_gate, w1, w2 = mlp.parameters()
    torch.testing.assert_close(mlp(x), (g(x @ w_gate.T) * (x @ w1.T)) @ w2.T, **EXACT)


@pytest.mark.parametrize("make", [MLP, GatedMLP])
def test_dropout_acts_on_the_hidden_layer_in_training_only(make):
    mlp, x = make(D, HIDDEN, dropout=0.5).double(), tokens()
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))
    assert MLP(D, HIDDEN).dropout.p == 0
