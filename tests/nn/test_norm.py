"""Norms: the formulas as published, and the near misses that are not them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.nn import TokenBatchNorm

B, N, D = 3, 5, 16
EXACT = {"atol": 1e-9, "rtol": 1e-7}


def tokens() -> torch.Tensor:
    return torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)


def layer_norm(x, gain, bias, eps=1e-5):
    """D1: γ (x − E[x]) / √(Var[x] + ε) + β with the variance divided by D."""
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt((x - mean).square().mean(-1, keepdim=True) + eps) + bias


def annotated_layer_norm(x, gain, bias, eps=1e-6):
    """The variant of the Annotated Transformer: variance divided by D − 1, ε outside the root."""
    return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


def gain_and_bias() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(D, dtype=torch.float64, requires_grad=True), torch.randn(D, dtype=torch.float64)


def test_D1_layer_norm_formula_equals_torch():
    x, (gain, bias) = tokens(), gain_and_bias()
    ours, theirs = layer_norm(x, gain, bias), F.layer_norm(x, (D,), gain, bias)
    torch.testing.assert_close(ours, theirs, **EXACT)
    direction = torch.randn_like(x)
    for a, b in zip(
        torch.autograd.grad(ours, [x, gain], direction),
        torch.autograd.grad(theirs, [x, gain], direction),
        strict=True,
    ):
        torch.testing.assert_close(a, b, **EXACT)


def test_D1_annotated_transformer_variant_is_another_function():
    x, gain, bias = torch.randn(64, D), torch.ones(D), torch.zeros(D)
    difference = (annotated_layer_norm(x, gain, bias) - F.layer_norm(x, (D,))).abs().max()
    # √(16/15) − 1 = 3.3 % of a normalised value of about 2.5.
    assert 0.05 < difference < 0.2


def test_E36_constant_input_gives_no_NaN_but_the_form_without_epsilon_does():
    constant = torch.full((2, D), 7.0)
    assert torch.equal(F.layer_norm(constant, (D,)), torch.zeros(2, D))
    assert layer_norm(constant, 1.0, 0.0, eps=0.0).isnan().all()
    constant_tokens = torch.full((B, N, D), 7.0)
    torch.testing.assert_close(TokenBatchNorm(D)(constant_tokens), torch.zeros(B, N, D), atol=1e-3, rtol=0)


def test_D2_batch_norm_equals_torch_on_flattened_tokens_in_training_and_evaluation():
    ours, theirs = TokenBatchNorm(D).double(), nn.BatchNorm1d(D).double()
    nn.init.normal_(theirs.weight), nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    for _ in range(3):
        x = tokens()
        out, expected = ours(x), theirs(x.flatten(0, 1)).view(B, N, D)
        torch.testing.assert_close(out, expected, **EXACT)
        direction = torch.randn_like(x)
        for a, b in zip(
            torch.autograd.grad(out, [x, *ours.parameters()], direction),
            torch.autograd.grad(expected, [x, *theirs.parameters()], direction),
            strict=True,
        ):
            torch.testing.assert_close(a, b, **EXACT)
    for name, buffer in theirs.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer, **EXACT)
    ours.eval(), theirs.eval()
    x = tokens()
    torch.testing.assert_close(ours(x), theirs(x.flatten(0, 1)).view(B, N, D), **EXACT)


def test_D2_E37_normalises_by_the_count_and_the_literal_form_by_count_less_one_differs():
    x = torch.tensor([1.0, 2.0, 4.0]).view(1, 3, 1)
    centred = (x - 7 / 3).flatten()
    norm = TokenBatchNorm(1, eps=1e-9, momentum=1.0)
    torch.testing.assert_close(norm(x).flatten(), centred / 1.5556**0.5, atol=1e-4, rtol=0)
    literal = centred / 2.3333**0.5
    assert (norm(x).flatten() - literal).abs().max() > 0.2
    # Only the running variance divides by the count less one.
    assert norm.running_var.item() == pytest.approx(2.3333, abs=1e-4)


def test_norm_of_ImageGPT_is_RMSNorm():
    norm, x = nn.RMSNorm(D, eps=1e-5).double(), tokens()
    nn.init.normal_(norm.weight)
    published = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5) * norm.weight
    torch.testing.assert_close(norm(x), published, **EXACT)
    assert (norm(x) - F.layer_norm(x, (D,), norm.weight)).abs().max() > 0.05
