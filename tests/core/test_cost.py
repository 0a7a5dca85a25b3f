"""What attention costs (B22), counted in multiplications."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mirada.core import (
    Attend,
    Attention,
    Concatenated,
    Windows,
    plane,
)  # fmt: skip


def flops(layer: nn.Module, *args, **kwargs) -> int:
    # The counter knows matrix products, not the fused kernel of a processor.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(*args, **kwargs)
    return counter.get_total_flops()


@pytest.mark.parametrize(("height", "width", "dim", "window"), [(14, 21, 12, 7), (10, 6, 35, 2)])
def test_B22_cost_equals_the_formula_for_full_and_windowed_attention(height, width, dim, window):
    """Ω(MSA) = 4hwC² + 2(hw)²C and Ω(W-MSA) = 4hwC² + 2M²hwC multiplications, softmax not counted: E21."""
    heads = Concatenated(dim, dim // 3 if dim % 3 == 0 else 5)
    cells, x = height * width, torch.randn(1, height * width, dim)
    places = plane(height, width)
    msa = 4 * cells * dim**2 + 2 * cells**2 * dim
    windowed = 4 * cells * dim**2 + 2 * window**2 * cells * dim
    assert flops(Attention(heads), x) == 2 * msa  # a multiplication and an addition
    assert flops(Attention(heads, neighbours=Windows((window, window))), x, places=places) == 2 * windowed


def test_B22_published_numbers_of_swin():
    cells, dim, window = 56 * 56, 96, 7
    x = torch.empty(1, cells, dim, device="meta")
    with torch.device("meta"):
        heads = Concatenated(dim, 3)
        assert flops(Attention(heads), x) == 2 * 2_003_828_736
    assert 4 * cells * dim**2 + 2 * cells**2 * dim == 2_003_828_736
    assert 4 * cells * dim**2 + 2 * window**2 * cells * dim == 145_108_992


def test_B22_cost_of_full_attention_grows_with_the_square_of_the_length():
    layer = Attend()
    cost = {n: flops(layer, *(torch.randn(1, 1, n, 8) for _ in range(3))) for n in (64, 128, 256)}
    assert cost[128] == 4 * cost[64]
    assert cost[256] == 16 * cost[64]
