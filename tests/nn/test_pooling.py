"""Pooling: formulas, padding, and attention pooling as the core's attention with one learned query."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada.core import Attention, Concatenated, record
from mirada.nn import AttentionPooling, ClassToken, Mean, SequencePooling

B, N, D = 3, 11, 14
EXACT = {"atol": 1e-9, "rtol": 1e-7}

POOLINGS = {
    "mean": lambda: Mean(),
    "attention": lambda: AttentionPooling(D, Attention(Concatenated(D, 7))),
    "sequence": lambda: SequencePooling(D),
}


def tokens() -> torch.Tensor:
    return torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)


def padding() -> torch.Tensor:
    return torch.arange(N) < torch.tensor([N, 5, 7])[:, None]


@pytest.mark.parametrize("name", POOLINGS)
def test_padding_plays_no_part_not_even_NaN(name):
    pool, x, valid = POOLINGS[name]().double(), tokens(), padding()
    out = pool(x, valid)
    assert out.shape == (B, D)
    for row, length in enumerate((N, 5, 7)):
        torch.testing.assert_close(out[row], pool(x[row : row + 1, :length])[0], **EXACT)


def test_mean_ignores_what_padding_holds_and_is_zero_without_tokens():
    x, valid = tokens().detach(), padding()
    x[~valid] = torch.nan
    assert Mean()(x, valid).isfinite().all()
    assert torch.equal(Mean()(x, torch.zeros_like(valid)), torch.zeros(B, D, dtype=torch.float64))


def test_I5_class_token_and_mean_of_the_others():
    x = tokens()
    assert torch.equal(ClassToken()(x), x[:, 0])
    torch.testing.assert_close(Mean(num_extra=2)(x), x[:, 2:].mean(1), **EXACT)
    torch.testing.assert_close(Mean(num_extra=2)(x, padding())[1], x[1, 2:5].mean(0), **EXACT)


def test_sequence_pooling_equals_the_published_linear_layer_with_its_bias():
    pool, linear, x = SequencePooling(D).double(), nn.Linear(D, 1).double(), tokens()
    with torch.no_grad():
        pool.query.copy_(linear.weight)
    expected = (linear(x).softmax(dim=1).mT @ x)[:, 0]
    torch.testing.assert_close(pool(x), expected, **EXACT)
    direction = torch.randn_like(expected)
    for a, b in zip(
        torch.autograd.grad(pool(x), [x, pool.query], direction),
        torch.autograd.grad(expected, [x, linear.weight], direction),
        strict=True,
    ):
        torch.testing.assert_close(a, b, **EXACT)


def test_attention_pooling_equals_torch_attention_with_one_query():
    pool, theirs = POOLINGS["attention"]().double(), nn.MultiheadAttention(D, 7, batch_first=True).double()
    heads, x = pool.attention.heads, tokens()
    with torch.no_grad():
        weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.normal_().chunk(3)
        for layer, weight, bias in zip((heads.to_q, heads.to_k, heads.to_v), weights, biases, strict=True):
            layer.weight.copy_(weight), layer.bias.copy_(bias)
        heads.to_out.load_state_dict(theirs.out_proj.state_dict())
    expected, _ = theirs(pool.query.expand(B, 1, D), x, x, key_padding_mask=~padding())
    torch.testing.assert_close(pool(x, padding()), expected[:, 0], **EXACT)


@pytest.mark.parametrize(("name", "heads"), [("attention", 7), ("sequence", 1)])
def test_attention_of_a_pooling_is_recorded(name, heads):
    pool, x = POOLINGS[name]().double(), tokens()
    with record(pool) as maps:
        pool(x, padding())
    assert maps[0].shape == (B, heads, 1, N)
    torch.testing.assert_close(maps[0].sum(-1), torch.ones(B, heads, 1, dtype=torch.float64), **EXACT)
    assert maps[0][1, :, :, 5:].abs().max() == 0
