"""What is counted is what the formulas of the papers say."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada.core import Attention, Concatenated, attention_flops, count_flops, full


def test_numbers_of_the_swin_paper() -> None:
    assert attention_flops(56 * 56, 96) == 2 * 2_003_828_736
    assert attention_flops(56 * 56, 96, window=7) == 2 * 145_108_992


@pytest.mark.parametrize(("num_tokens", "dim", "num_heads"), [(53, 24, 3), (7, 20, 5)])
def test_attention_is_counted_as_the_formula_says(num_tokens: int, dim: int, num_heads: int) -> None:
    attention = Attention(Concatenated(dim, num_heads), neighbours=full())
    assert count_flops(attention, torch.randn(1, num_tokens, dim)) == attention_flops(num_tokens, dim)


def test_a_convolution_and_a_matrix() -> None:
    model = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.Flatten(), nn.Linear(5 * 7 * 11, 13))
    assert count_flops(model, torch.randn(1, 3, 7, 11)) == 2 * (7 * 11 * 3 * 5 * 9 + 5 * 7 * 11 * 13)


def test_the_model_trains_on_as_before() -> None:
    model = nn.Linear(3, 2).train()
    count_flops(model, torch.randn(1, 3))
    assert model.training
