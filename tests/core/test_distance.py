"""Scores by distance: hand-computed, exact where a query is a key, and as a regression on what is known nearby."""

from __future__ import annotations

import math

import pytest
import torch

from mirada.core import Attend, Distance, Mask
from tests.core.layers import B, H, K, M, N, qkv


def sharpened(*sharpness: float) -> Distance:
    score = Distance(len(sharpness)).double()
    with torch.no_grad():
        score.log_sharpness.copy_(torch.tensor(sharpness, dtype=torch.float64).log().view(-1, 1, 1))
    return score


def test_hand_computed():
    q_1H2K = torch.tensor([[[[0, 0], [3, 4]], [[1, 1], [-2, -3]]]], dtype=torch.float64)
    k_1H3K = torch.tensor([[[[0, 0], [3, 4], [6, 8]], [[1, 1], [1, 3], [4, 5]]]], dtype=torch.float64)
    expected = [[[0, -5, -10], [-5, 0, -5]], [[0, -6, -15], [-15, -3 * math.sqrt(45), -30]]]
    torch.testing.assert_close(sharpened(1, 3)(q_1H2K, k_1H3K), torch.tensor([expected], dtype=torch.float64))


def test_starts_as_the_plain_distance():
    q, k, _ = qkv()
    logits = Distance(H)(q, k)
    assert logits.shape == (B, H, N, M)
    for i in range(N):
        for j in range(M):
            torch.testing.assert_close(logits[..., i, j], -(q[:, :, i] - k[:, :, j]).norm(dim=-1))


def test_gradient_is_a_unit_vector_towards_the_key():
    q, k, _ = (x[:1, :1, :1].requires_grad_() for x in qkv())
    score = sharpened(2.0)
    (gradient,) = torch.autograd.grad(score(q, k).sum(), q)
    torch.testing.assert_close(gradient, 2 * (k - q) / (k - q).norm())
    assert torch.autograd.gradcheck(score, (q, k))
    (of_sharpness,) = torch.autograd.grad(score(q, k).sum(), score.log_sharpness)
    torch.testing.assert_close(of_sharpness.squeeze(), -2 * (q - k).norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_is_finite_where_a_query_is_a_key(dtype):
    z = torch.randn(B, H, N, K, dtype=dtype, requires_grad=True)
    attend = Attend(Distance(H).to(dtype))
    out = attend(z, z.clone(), torch.randn(B, H, N, 2, dtype=dtype))
    gradients = torch.autograd.grad(out.square().sum(), [z, *attend.parameters()])
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


def test_a_query_that_is_a_key_is_at_distance_zero_whoever_else_is_asked():
    """So that a map made tile by tile is the map made at once, also where a plot is."""
    z_BHNK = 30 * torch.randn(B, H, 211, K)
    logits = Distance(H)(z_BHNK, z_BHNK)
    assert not logits.diagonal(dim1=-2, dim2=-1).any()
    assert torch.equal(Distance(H)(z_BHNK[:, :, 17:18], z_BHNK), logits[:, :, 17:18])


def test_pairs_are_the_entries_of_the_dense_form():
    q, k, _ = qkv()
    i_E, j_E = torch.randint(0, N, (19,)), torch.randint(0, M, (19,))
    score = sharpened(0.5, 1.0, 2.0)
    torch.testing.assert_close(score.pairs(q, k, i_E, j_E), score(q, k)[..., i_E, j_E])


def test_only_distances_count():
    """Moving and turning queries and keys together changes nothing."""
    q, k, _ = qkv()
    turn_KK = torch.linalg.qr(torch.randn(K, K, dtype=torch.float64)).Q
    shift_K = torch.randn(K, dtype=torch.float64)
    torch.testing.assert_close(Distance(H)(q @ turn_KK + shift_K, k @ turn_KK + shift_K), Distance(H)(q, k))


def test_between_the_mean_of_all_and_the_nearest():
    q, k, v = qkv(heads=1)
    torch.testing.assert_close(Attend(sharpened(1e-9))(q, k, v), v.mean(2, keepdim=True).expand(-1, -1, N, -1))
    nearest = torch.cdist(q, k).argmin(-1)
    expected = v.gather(2, nearest[..., None].expand(-1, -1, -1, v.shape[-1]))
    torch.testing.assert_close(Attend(sharpened(1e7))(q, k, v), expected)


def test_the_nearest_of_those_that_may_be_looked_at():
    q, k, v = qkv(batch=1, heads=1)
    nearest_N = torch.cdist(q, k)[0, 0].argmin(-1)
    allowed_NM = torch.ones(N, M, dtype=torch.bool)
    allowed_NM[torch.arange(N), nearest_N] = False
    second_N = torch.cdist(q, k)[0, 0].masked_fill(~allowed_NM, torch.inf).argmin(-1)
    out = Attend(sharpened(1e7))(q, k, v, neighbours=Mask(allowed_NM))
    torch.testing.assert_close(out[0, 0], v[0, 0, second_N])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision(dtype):
    q, k, _ = qkv()
    logits = Distance(H).to(dtype)(q.to(dtype), k.to(dtype))
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.double(), Distance(H)(q, k), atol=0.1, rtol=0.01)
