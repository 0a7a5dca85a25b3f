"""What is counted is what the formulas of the papers say."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada import systems
from mirada.core import (
    Attend,
    Attention,
    Concatenated,
    RandomFeatures,
    Windows,
    attention_flops,
    causal,
    count_flops,
    formula_flops,
    full,
    plane,
)


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


@pytest.mark.parametrize("system", ["vit", "deit", "deepvit", "vit_hybrid", "convmixer", "cnn", "resnet"])
def test_counter_and_formula_agree_on_whole_systems(system: str) -> None:
    image = torch.randn(2, 3, 12, 20)
    model = systems.create(system, **systems.card(system).tiny, image_size=(12, 20), in_channels=3, num_classes=5)
    assert formula_flops(model, image) == count_flops(model, image)
    assert model.training


class WindowAttention(nn.Module):
    def __init__(self, dim: int, side: int) -> None:
        super().__init__()
        self.attention = Attention(Concatenated(dim, 2), neighbours=Windows((side, side)))

    def forward(self, x_BND: torch.Tensor) -> torch.Tensor:
        return self.attention(x_BND, places=plane(6, 9))


def test_a_neighbourhood_costs_its_pairs() -> None:
    windows = WindowAttention(10, 3)
    assert formula_flops(windows, torch.randn(1, 54, 10)) == attention_flops(54, 10, window=3)
    looking_back = Attention(Concatenated(10, 2), neighbours=causal())
    assert formula_flops(looking_back, torch.randn(1, 7, 10)) == 2 * (4 * 7 * 10**2 + 7 * 8 * 10)


def test_random_features_cost_what_is_counted_but_for_the_division() -> None:
    attend = Attend(RandomFeatures(10, 6))
    q, k, v = torch.randn(1, 2, 7, 10), torch.randn(1, 2, 11, 10), torch.randn(1, 2, 11, 13)
    formula, sums = formula_flops(attend, q, k, v), 2 * 2 * 7 * 6
    assert formula == 2 * 2 * (7 + 11) * 6 * (10 + 13)
    assert count_flops(attend, q, k, v) == formula + sums
