"""What a forward pass costs, counted as it runs, and what attention costs by formula.

    Ω(MSA) = 4 N D² + 2 N² D            multiplications of full attention over N tokens of width D (Liu 2021, eq. 1)
    Ω(W-MSA) = 4 N D² + 2 M² N D        within windows of M × M (eq. 2)

A multiplication with its addition is two operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count


def count_flops(model: nn.Module, *inputs: Any) -> int:
    """Operations of all products and convolutions of one forward pass, those inside fused attention too."""
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    was_training = model.training
    model.eval()
    try:
        # Not under no_grad: the counter follows modules by their gradients, and stumbles over parameters without.
        with FlopCounterMode(display=False, custom_mapping={fused: _fused_flops}) as counter:
            model(*inputs)
    finally:
        model.train(was_training)
    return counter.get_total_flops()


def attention_flops(num_tokens: int, dim: int, window: int | None = None) -> int:
    """Operations of one attention layer with its four projections: twice Ω above; `window` is M."""
    seen = num_tokens if window is None else window**2
    return 2 * (4 * num_tokens * dim**2 + 2 * num_tokens * seen * dim)


def _fused_flops(q_shape: Any, k_shape: Any, v_shape: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_flop_count(q_shape, k_shape, v_shape)
