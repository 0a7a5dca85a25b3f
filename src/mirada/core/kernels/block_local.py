"""Bands of finite width: blocks of c queries look at the c + before + after keys around them. Cost O(N · width).

Shape letters: B batch, H heads, N tokens, K head dim, C blocks, n queries and m keys of a block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mirada.core.kernels.blocks import attend_blocks, refuses_blocks_of_a_line
from mirada.core.kernels.call import Call
from mirada.core.neighbours import Band
from mirada.core.places import Places

# Below this many tokens per key of the band, full attention under a mask is as fast.
MIN_LENGTH_PER_WIDTH = 2


def refuses(call: Call) -> str | None:
    if not isinstance(call.neighbours, Band) or call.neighbours.before is None or call.neighbours.after is None:
        return "the neighbourhood is not a band of finite width"
    return refuses_blocks_of_a_line(call)


def is_worthwhile(call: Call) -> bool:
    """The band is narrow against the length."""
    band = call.neighbours
    assert isinstance(band, Band) and band.before is not None and band.after is not None
    return call.q_BHNK.shape[-2] >= MIN_LENGTH_PER_WIDTH * (band.before + band.after + 1)


def run(call: Call) -> Tensor:
    band = call.neighbours
    assert isinstance(band, Band) and band.before is not None and band.after is not None
    before, after = band.before, band.after
    length = call.q_BHNK.shape[-2]
    n = max(16, min(128, (before + after + 1) // 2))
    num_blocks = -(-length // n)
    tail = num_blocks * n - length
    m = n + before + after

    def around(x_BHNK: Tensor) -> Tensor:
        return _overlapping(_padded(x_BHNK, before, tail + after), m, n)

    start_C1 = torch.arange(0, num_blocks * n, n, device=call.q_BHNK.device)[:, None]
    i_Cn = start_C1 + torch.arange(n, device=start_C1.device)
    j_Cm = start_C1 + torch.arange(-before, n + after, device=start_C1.device)
    queries, keys = (_on_a_line(index.clamp(0, length - 1), length) for index in (i_Cn, j_Cm))
    # The rule is the same in every block; only the ends lack some keys.
    back_nm = i_Cn[0, :, None] - j_Cm[0]
    rule_nm = (back_nm <= before) & (back_nm >= -after)
    allowed = (rule_nm & ((j_Cm >= 0) & (j_Cm < length))[:, None, :])[None, None]
    if call.valid_BM is not None:
        allowed = allowed & around(call.valid_BM[:, None, :, None]).mT
    q = _padded(call.q_BHNK, 0, tail).unflatten(-2, (num_blocks, n))
    out = attend_blocks(call, q, around(call.k_BHMK), around(call.v_BHMV), queries, keys, allowed)
    return out.flatten(2, 3)[..., :length, :]


def _padded(x_BHNK: Tensor, before: int, after: int) -> Tensor:
    """With so many zeros at its ends; F.pad would write all of it twice, and copy where there is nothing to add."""
    *batch, _, width = x_BHNK.shape
    ends = [x_BHNK.new_zeros(*batch, count, width) for count in (before, after)]
    return torch.cat([ends[0], x_BHNK, ends[1]], dim=-2) if before or after else x_BHNK


def _overlapping(x_BHNK: Tensor, m: int, n: int) -> Tensor:
    """(B, H, C, m, K): m tokens from every n-th on, as a view."""
    is_differentiated = x_BHNK.requires_grad and torch.is_grad_enabled()
    if not is_differentiated or torch.compiler.is_compiling():
        return x_BHNK.unfold(-2, m, n).mT
    return _Overlapping.apply(x_BHNK, m, n)


class _Overlapping(torch.autograd.Function):
    """The same, but its gradient adds whole blocks: torch's own goes token by token, and takes as long as attention."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x_BHNK: Tensor, m: int, n: int) -> Tensor:
        return x_BHNK.unfold(-2, m, n).mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int, int], output: Tensor) -> None:
        ctx.length, ctx.n = inputs[0].shape[-2], inputs[2]

    @staticmethod
    def backward(ctx: Any, gradient_BHCmK: Tensor) -> tuple[Tensor, None, None]:
        *batch, num_blocks, m, width = gradient_BHCmK.shape
        n = ctx.n
        sums_BHNK = gradient_BHCmK.new_zeros(*batch, max(ctx.length, (num_blocks + -(-m // n) - 1) * n), width)
        for first in range(0, m, n):
            part_BHCnK = gradient_BHCmK[..., first : first + n, :]
            place_BHCnK = sums_BHNK[..., first : first + num_blocks * n, :].unflatten(-2, (num_blocks, n))
            place_BHCnK[..., : part_BHCnK.shape[-2], :].add_(part_BHCnK)
        return sums_BHNK[..., : ctx.length, :], None, None


def _on_a_line(index: Tensor, length: int) -> Places:
    return Places(index, index[..., None], (length,))
