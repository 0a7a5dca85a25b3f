"""Attention within blocks: C blocks of queries, each with its own block of keys, so the cost is C·n·m instead of N·M.

Shape letters: B batch, H heads, C blocks, n queries and m keys of a block, K head dim, V value dim.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from mirada.core.kernels import fused, reference
from mirada.core.kernels.call import Call
from mirada.core.places import Places
from mirada.core.score import DotScore


def refuses_blocks(call: Call) -> str | None:
    """What no block kernel serves."""
    if call.mix is not None:
        return f"{type(call.mix).__name__} mixes the weights of whole rows"
    if call.adds_to_values:
        return f"{type(call.position).__name__} adds to the values"
    if not call.is_self_attention:
        return "queries and keys are not the same tokens from the first one on"
    return None


def refuses_blocks_of_a_line(call: Call) -> str | None:
    places = call.query_places
    if places.num_extra or places.coords_NA.shape[-1] != 1:
        return "the tokens are not on a line"
    return refuses_blocks(call)


def attend_blocks(
    call: Call, q: Tensor, k: Tensor, v: Tensor, queries: Places, keys: Places, allowed: Tensor | None
) -> Tensor:
    """(B, H, C, n, K) × (B, H, C, m, K) → (B, H, C, n, V) under `allowed` (B or 1, 1, C, n, m)."""
    bias = None if call.position is None else call.position.bias(q, queries, keys)
    if not isinstance(call.score, DotScore):
        logits = call.score(q, k)
        weights = reference.masked_softmax(logits if bias is None else logits + bias, allowed)
        return reference.combine(replace(call, v_BHMV=v, position=None), weights)
    q, scale = call.score.as_dot(q)
    mask = allowed
    if bias is not None:
        mask = bias if allowed is None else bias.masked_fill(~allowed, -torch.inf)
    batch, heads = q.shape[:2]
    if mask is not None:
        mask = mask.view((1,) * (q.ndim - mask.ndim) + mask.shape)
        mask = mask[0] if mask.shape[:2] == (1, 1) else mask.expand(batch, heads, -1, -1, -1).flatten(0, 1)
    # (B·H) stands where SDPA has its batch and C where it has its heads: that flattening copies nothing.
    out = fused.masked_sdpa(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), mask, scale, call.dropout)
    return out.unflatten(0, (batch, heads))
