"""Strided and fixed patterns of the Sparse Transformer: a near part and a far part under one softmax.

    strided: near = this block and the one before, far = the same column of earlier blocks      cost O(N·(2l + N/l))
    fixed:   near = this block,                    far = the summary columns of earlier blocks  cost O(N·(l + c·N/l))

Shape letters: B batch, H heads, N tokens, K channels, T blocks, l block length, m keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.kernels.blocks import refuses_blocks_of_a_line
from mirada.core.kernels.call import Call
from mirada.core.kernels.reference import masked_softmax
from mirada.core.neighbours import Fixed, Strided
from mirada.core.places import Places

Gather = Callable[[Tensor], Tensor]
Rule = Callable[[Tensor, Tensor], Tensor]


def refuses(call: Call) -> str | None:
    if not isinstance(call.neighbours, Strided | Fixed):
        return "the neighbourhood is neither strided nor fixed"
    return refuses_blocks_of_a_line(call)


def run(call: Call) -> Tensor:
    rule = call.neighbours
    assert isinstance(rule, Strided | Fixed)
    block = rule.stride if isinstance(rule, Strided) else rule.block
    length = call.q_BHNK.shape[-2]
    tail = -length % block
    num_blocks = (length + tail) // block

    def cut(x: Tensor) -> Tensor:
        """(…, N, K) → (…, T, l, K)"""
        return F.pad(x, (0, 0, 0, tail)).unflatten(-2, (num_blocks, block))

    q, k, v = cut(call.q_BHNK), cut(call.k_BHMK), cut(call.v_BHMV)
    index_Tl = torch.arange(num_blocks * block, device=q.device).view(num_blocks, block)
    exists = (index_Tl < length)[None, None]
    if call.valid_BM is not None:
        exists = exists & cut(call.valid_BM[:, None, :, None])[..., 0]
    pattern = _strided(rule) if isinstance(rule, Strided) else _fixed(rule)

    def logits(take: Gather, is_pair: Rule, q: Tensor, i: Tensor) -> Tensor:
        j = take(index_Tl[..., None])[..., 0]
        scores = call.score(q, take(k))
        if call.position is not None:
            scores = scores + call.position.bias(q, _on_a_line(i, length), _on_a_line(j, length))
        allowed = is_pair(i[..., :, None], j[..., None, :]) & take(exists[..., None]).mT
        return scores.masked_fill(~allowed, -torch.inf)

    regroup = pattern.regroup
    near = logits(pattern.near, pattern.is_near, q, index_Tl)
    far = regroup(logits(pattern.far, pattern.is_far, regroup(q), regroup(index_Tl[..., None])[..., 0]))
    both = torch.cat([near, far], dim=-1)
    weights = masked_softmax(both, both > -torch.inf)
    weights = F.dropout(weights, call.dropout, training=call.dropout > 0)
    of_near, of_far = weights.split([near.shape[-1], far.shape[-1]], dim=-1)
    out = of_near @ pattern.near(v) + regroup(regroup(of_far) @ pattern.far(v))
    return out.flatten(2, 3)[..., :length, :]


class _Pattern(NamedTuple):
    """How blocks of queries meet their keys: gathers take (…, T, l, K) to (…, T, m, K), regrouped to (…, l, T, K)."""

    near: Gather
    is_near: Rule
    far: Gather
    is_far: Rule
    regroup: Gather


def _strided(rule: Strided) -> _Pattern:
    def with_block_before(x: Tensor) -> Tensor:
        return torch.cat([F.pad(x, (0, 0, 0, 0, 1, 0))[..., :-1, :, :], x], dim=-2)

    def is_near(i: Tensor, j: Tensor) -> Tensor:
        return (i - j >= 0) & (i - j <= rule.stride)

    def is_far(i: Tensor, j: Tensor) -> Tensor:
        return i - j > rule.stride

    # After exchanging T and l, "the same column of all blocks" is one block of keys.
    return _Pattern(with_block_before, is_near, _columns, is_far, _columns)


def _fixed(rule: Fixed) -> _Pattern:
    def summaries(x: Tensor) -> Tensor:
        return x[..., rule.block - rule.num_summary :, :].flatten(-3, -2).unsqueeze(-3)

    def is_near(i: Tensor, j: Tensor) -> Tensor:
        return j <= i

    def is_far(i: Tensor, j: Tensor) -> Tensor:
        return j // rule.block < i // rule.block

    return _Pattern(_same, is_near, summaries, is_far, _same)


def _same(x: Tensor) -> Tensor:
    return x


def _columns(x: Tensor) -> Tensor:
    return x.transpose(-3, -2)


def _on_a_line(index: Tensor, length: int) -> Places:
    index = index.clamp(max=length - 1)
    return Places(index, index[..., None], (length,))
