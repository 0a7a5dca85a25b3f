"""The product of a handful of rows is F.linear, whichever way round it is computed."""

import pytest
import torch
from torch.nn import functional as F

import mirada.core.linear
from mirada.core.linear import FEW, MIN_WEIGHTS, Linear, linear


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(mirada.core.linear, "MIN_WEIGHTS", 0)


def test_few_rows_of_a_large_matrix_are_turned_round_and_others_are_not(monkeypatch):
    monkeypatch.setattr(mirada.core.linear, "MIN_WEIGHTS", MIN_WEIGHTS)
    turned = []
    monkeypatch.setattr(torch, "addmm", lambda bias, weight, x: turned.append(x.shape[1]) or weight @ x + bias)
    with torch.no_grad():
        for rows in (1, 2, 8, 15, 16):
            Linear(256, 256)(torch.randn(rows, 256))
            Linear(256, 255)(torch.randn(rows, 256))
    assert turned == [2, 8, 15]


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("lead", [(1,), (2, 3), (7,), (5, 1), (3, 1, 5), (8, 1), (15,), (16,), (0, 7), (2, 11), ()])
def test_equals_torch(lead, with_bias):
    x, weight = torch.randn(*lead, 7, dtype=torch.float64), torch.randn(13, 7, dtype=torch.float64)
    bias = torch.randn(13, dtype=torch.float64) if with_bias else None
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight, bias), F.linear(x, weight, bias))


def test_rows_need_not_be_contiguous():
    x, weight = torch.randn(4, 2, 7, dtype=torch.float64).transpose(0, 1), torch.randn(3, 7, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight), F.linear(x, weight))


def test_with_gradients_it_is_torch_to_the_bit():
    layer, x = Linear(7, 13), torch.randn(FEW.start, 7)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
