"""Bands of finite width: blocks of c queries look at the c + before + after keys around them. Cost O(N · width).

Shape letters: B batch, H heads, N tokens, K head dim, C blocks, n queries and m keys of a block.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

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

    def around(x_BNK: Tensor) -> Tensor:
        return F.pad(x_BNK, (0, 0, before, tail + after)).unfold(-2, m, n).mT

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
    q = F.pad(call.q_BHNK, (0, 0, 0, tail)).unflatten(-2, (num_blocks, n))
    out = attend_blocks(call, q, around(call.k_BHMK), around(call.v_BHMV), queries, keys, allowed)
    return out.flatten(2, 3)[..., :length, :]


def _on_a_line(index: Tensor, length: int) -> Places:
    return Places(index, index[..., None], (length,))
