"""What a forward pass costs, counted as it runs, and what it costs by formula.

    Ω(MSA) = 4 N D² + 2 N² D            multiplications of full attention over N tokens of width D (Liu 2021, eq. 1)
    Ω(W-MSA) = 4 N D² + 2 M² N D        within windows of M × M (eq. 2)
    Ω(N) = 4 N D² + 2 Σ_i |N_i| D       within any neighbourhoods, of which these are two

A multiplication with its addition is two operations.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from mirada.core import kernels
from mirada.core.attention import Attend, stand_ins
from mirada.core.kernels.call import Call
from mirada.core.kernels.reference import allowed_pairs
from mirada.core.score import RandomFeatures

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


def count_flops(model: nn.Module, *inputs: Any) -> int:
    """Operations of all products and convolutions of one forward pass, those inside fused attention too."""
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    was_training = model.training
    model.eval()
    try:
        counter = FlopCounterMode(display=False, custom_mapping={fused: _fused_flops})
        # It follows modules by hooks on all modules of the process, also those that other threads run: not wanted here.
        counter.mod_tracker = _AllInOne()  # type: ignore[assignment]
        with counter:
            model(*inputs)
    finally:
        model.train(was_training)
    return counter.get_total_flops()


class _AllInOne:
    """In place of the counter's own way to tell modules apart."""

    parents = frozenset({"Global"})

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def attention_flops(num_tokens: int, dim: int, window: int | None = None) -> int:
    """Operations of one attention layer with its four projections: twice Ω above; `window` is M."""
    seen = num_tokens if window is None else window**2
    return 2 * (4 * num_tokens * dim**2 + 2 * num_tokens * seen * dim)


def formula_flops(model: nn.Module, *inputs: Any) -> int:
    """Operations of one forward pass by the formulas of its layers, whatever the kernels compute besides.

    Matrices have 2·in·out per row, convolutions 2·(in/groups)·out·k² per place, attention its pairs, Ω(N) above; with
    random features (N + M)·Z·(K + V). Scores with weights of their own, and positions, have no formula here.
    """
    found: list[int] = []

    def of_layer(layer: nn.Module, _: Any, out: Tensor) -> None:
        assert isinstance(layer, nn.Linear | Convolution)
        found.append(2 * out.numel() * prod(layer.weight.shape[1:]))

    def of_attention(call: Call) -> Tensor:
        found.append(_attention_formula(call))
        return kernels.run(call)

    was_training = model.training
    model.eval()
    listeners: dict[nn.Module, Callable[[Call], Tensor]] = {
        module: of_attention for module in model.modules() if isinstance(module, Attend)
    }
    try:
        with torch.no_grad(), stand_ins.of({**stand_ins.get(), **listeners}), ExitStack() as hooks:
            for module in model.modules():
                if isinstance(module, nn.Linear | Convolution):
                    hooks.enter_context(module.register_forward_hook(of_layer))
            model(*inputs)
    finally:
        model.train(was_training)
    return sum(found)


def _attention_formula(call: Call) -> int:
    """Of scores and weighted sums; the projections are layers of their own."""
    widths = call.q_BHNK.shape[-1] + call.v_BHMV.shape[-1]
    batch_and_heads, num_queries, num_keys = call.q_BHNK.shape[:2], call.q_BHNK.shape[-2], call.k_BHMK.shape[-2]
    if isinstance(call.score, RandomFeatures):
        return 2 * prod(batch_and_heads) * (num_queries + num_keys) * len(call.score.weight) * widths
    allowed = allowed_pairs(call)
    pairs = prod(batch_and_heads) * num_queries * num_keys
    if allowed is not None:
        pairs = int(allowed.expand(*batch_and_heads, num_queries, num_keys).sum())
    return 2 * pairs * widths


def _fused_flops(q_shape: Any, k_shape: Any, v_shape: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    return sdpa_flop_count(q_shape, k_shape, v_shape)
