"""Distances by products, for predictions: a few queries at a time, so that their weights stay near the processor.

    ‖q − k‖² = |q|² + |k|² − 2 q·k,   of differences where that would be all rounding

Shape letters: B batch, H heads, N and n queries, M keys, K head dim.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core.kernels.call import Call
from mirada.core.neighbours import full
from mirada.core.score import Distance

QUERIES_AT_ONCE = 32
NEAR = 1e-2  # of |q|²: below it, products have lost more than four digits


def refuses(call: Call) -> str | None:
    if not isinstance(call.score, Distance):
        return f"{type(call.score).__name__} is no distance"
    if call.neighbours != full():
        return "it looks at all keys that are real"
    if call.position is not None:
        return "a position adds to the logits"
    if call.mix is not None:
        return f"{type(call.mix).__name__} mixes the weights"
    if call.dropout:
        return "dropout acts on the weights"
    if call.q_BHNK.dtype not in (torch.float32, torch.float64):
        return f"{call.q_BHNK.dtype} has too few digits for products"
    if torch.compiler.is_compiling():
        return "which keys are near is known only when it runs"
    if torch.is_grad_enabled() and any(x.requires_grad for x in _inputs(call)):
        return "a gradient is wanted"
    return None


def _inputs(call: Call) -> tuple[Tensor, ...]:
    assert isinstance(call.score, Distance)
    return call.q_BHNK, call.k_BHMK, call.v_BHMV, call.score.log_sharpness


def run(call: Call) -> Tensor:
    assert isinstance(call.score, Distance)
    sharpness = call.score.log_sharpness.exp()
    middle_BH1K = call.k_BHMK.mean(-2, keepdim=True)  # what all have in common costs digits
    q_BHNK, k_BHMK = ((x - middle_BH1K) * sharpness for x in (call.q_BHNK, call.k_BHMK))
    valid_BHM1 = None if call.valid_BM is None else call.valid_BM[:, None, :, None]
    squares_BHM1 = k_BHMK.square().sum(-1, keepdim=True)
    if valid_BHM1 is not None:
        squares_BHM1 = squares_BHM1.masked_fill(~valid_BHM1, torch.inf)
    # One product each for the squares of the distances, and for what is seen together with the sum of the weights.
    keys_BHKM = torch.cat([-2 * k_BHMK, torch.ones_like(squares_BHM1), squares_BHM1], dim=-1).mT.contiguous()
    values_BHMV = torch.cat([call.v_BHMV, torch.ones_like(call.v_BHMV[..., :1])], dim=-1)
    out_BHNV = torch.cat([_look(q, k_BHMK, keys_BHKM, values_BHMV) for q in q_BHNK.split(QUERIES_AT_ONCE, dim=-2)], -2)
    return out_BHNV if valid_BHM1 is None else out_BHNV.masked_fill(~valid_BHM1.any(-2, keepdim=True), 0.0)


def _look(q_BHnK: Tensor, k_BHMK: Tensor, keys_BHKM: Tensor, values_BHMV: Tensor) -> Tensor:
    own_BHn1 = q_BHnK.square().sum(-1, keepdim=True)
    far_BHnM = torch.cat([q_BHnK, own_BHn1, torch.ones_like(own_BHn1)], dim=-1) @ keys_BHKM
    nearest_BHn1 = far_BHnM.amin(-1, keepdim=True)
    if (nearest_BHn1 < NEAR * own_BHn1).any():
        b, h, n, m = near = (far_BHnM < NEAR * own_BHn1).nonzero(as_tuple=True)
        far_BHnM[near] = (q_BHnK[b, h, n] - k_BHMK[b, h, m]).square().sum(-1)
        nearest_BHn1 = far_BHnM.amin(-1, keepdim=True)
    weights_BHnM = far_BHnM.sqrt_().neg_().add_(nearest_BHn1.sqrt_()).exp_()
    seen_BHnV = weights_BHnM @ values_BHMV
    return seen_BHnV[..., :-1] / seen_BHnV[..., -1:]
