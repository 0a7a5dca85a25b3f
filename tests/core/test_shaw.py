"""C8: Shaw's relative positions, against the a_ij written out."""

from __future__ import annotations

import inspect
import math

import pytest
import torch
from torch import nn

from mirada.core import Attend, ScaledDot, Shaw, lattice, line, plane

B, H, N, K, D = 2, 3, 13, 10, 14


def shaw_naive(shaw: Shaw, q, k, v):
    """a_ij written out for every pair: logits and result of one head after another."""
    reach = shaw.max_distance
    logits, out = q.new_zeros(B, H, N, N), torch.zeros_like(v)
    for b in range(B):
        for h in range(H):
            for i in range(N):
                for j in range(N):
                    a = shaw.key_table[max(-reach, min(j - i, reach)) + reach]
                    logits[b, h, i, j] = q[b, h, i] @ (k[b, h, j] + a) / math.sqrt(K)
                for j, alpha in enumerate(logits[b, h, i].softmax(-1)):
                    a = shaw.value_table[max(-reach, min(j - i, reach)) + reach]
                    out[b, h, i] = out[b, h, i] + alpha * (v[b, h, j] + a)
    return logits, out


@pytest.mark.parametrize("reach", [0, 2, 4, 20], ids=lambda reach: f"k={reach}")
def test_C8_shaw_compact_form_equals_naive_form(reach):
    """k = 2 and 4 have N > 2k, so most pairs are clipped; k = 20 clips none."""
    shaw = Shaw(K, reach, D).double()
    q, k = torch.randn(2, B, H, N, K, dtype=torch.float64)
    v = torch.randn(B, H, N, D, dtype=torch.float64)
    logits, out = shaw_naive(shaw, q, k, v)
    torch.testing.assert_close(ScaledDot()(q, k) + shaw.bias(q, line(N), line(N)), logits)
    torch.testing.assert_close(Attend(position=shaw)(q, k, v), out)


def test_C8_shaw_gradient_equals_naive_form():
    shaw = Shaw(K, 3, D).double()
    q, k = torch.randn(2, B, H, N, K, dtype=torch.float64)
    v = torch.randn(B, H, N, D, dtype=torch.float64)
    compact = torch.autograd.grad(Attend(position=shaw)(q, k, v).square().sum(), list(shaw.parameters()))
    naive = torch.autograd.grad(shaw_naive(shaw, q, k, v)[1].square().sum(), list(shaw.parameters()))
    for got, expected in zip(compact, naive, strict=True):
        torch.testing.assert_close(got, expected)


def test_C8_shaw_without_reach_is_blind_to_position():
    """k = 0: one a^K for all pairs changes nothing, one a^V adds a constant."""
    shaw = Shaw(K, 0, D).double()
    q, k = torch.randn(2, B, H, N, K, dtype=torch.float64)
    v = torch.randn(B, H, N, D, dtype=torch.float64)
    torch.testing.assert_close(Attend(position=shaw)(q, k, v), Attend()(q, k, v) + shaw.value_table)


def test_C8_shaw_is_invariant_to_translation():
    shaw, q = Shaw(K, 4), torch.randn(B, H, N, K)
    here, there = (shaw.bias(q, line(N, start), line(N, start)) for start in (0, 1_000))
    torch.testing.assert_close(here, there, atol=0, rtol=0)


def test_C8_shaw_leaves_extra_tokens_alone():
    shaw = Shaw(K, 2, D).double()
    q, k = torch.randn(2, B, H, 1 + N, K, dtype=torch.float64)
    v = torch.randn(B, H, 1 + N, D, dtype=torch.float64)
    places = lattice((N,), num_extra=1)
    out = Attend(position=shaw)(q, k, v, queries=places, keys=places)
    torch.testing.assert_close(out[:, :, 0], Attend()(q, k, v)[:, :, 0])
    weights = (ScaledDot()(q, k) + nn.functional.pad(shaw.bias(q[:, :, 1:], places, places), (1, 0, 1, 0))).softmax(-1)
    row = (torch.arange(N) - torch.arange(N)[:, None]).clamp(-2, 2) + 2
    expected = weights @ v
    expected[:, :, 1:] += torch.einsum("bhnm,nmv->bhnv", weights[:, :, 1:, 1:], shaw.value_table[row])
    torch.testing.assert_close(out, expected)


def test_C8_shaw_on_a_plane_counts_in_raster_order():
    shaw, q = Shaw(K, 4), torch.randn(B, H, 15, K)
    torch.testing.assert_close(shaw.bias(q, plane(3, 5), plane(3, 5)), shaw.bias(q, line(15), line(15)), atol=0, rtol=0)


def test_E31_tables_have_one_row_per_clipped_offset():
    shaw = Shaw(K, 4, D)
    assert shaw.key_table.shape == (2 * 4 + 1, K)
    assert shaw.value_table.shape == (2 * 4 + 1, D)
    assert not {"num_heads", "heads"} & set(inspect.signature(Shaw).parameters)  # shared by the heads


def test_E31_literal_sum_over_i_loses_the_query():
    """h_i = Σ_i α_ij (v_j + a_ij) is one number per j: the right sum runs over the keys."""
    shaw = Shaw(K, 2, D).double()
    weights = torch.rand(N, N, dtype=torch.float64).softmax(-1)
    row = (torch.arange(N) - torch.arange(N)[:, None]).clamp(-2, 2) + 2
    a_NMV = shaw.value_table[row]
    over_keys = torch.einsum("ij,ijv->iv", weights, a_NMV)
    over_queries = torch.einsum("ij,ijv->jv", weights, a_NMV)
    got = shaw.values(weights[None, None], line(N), line(N))[0, 0]
    torch.testing.assert_close(got, over_keys)
    assert (got - over_queries).abs().max() > 0.01
