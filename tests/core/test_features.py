"""Random features: what they estimate, and attention through them without the N × M matrix."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from mirada.core import Attend, RandomFeatures, ScaledDot, record
from mirada.core.kernels import choose, forced, reference, run
from tests.core.crossproduct import H, K, N, make_call

VALUE_DIM = 11


def call(padding: str = "no padding"):
    return make_call("random features", "full", "none", "none", padding)


def naive(score: RandomFeatures, q, k, v):
    """h_i = Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j), pair by pair and feature by feature."""
    W = score.weight

    def features(x):
        x = x * score.scale**0.5
        return [torch.exp((w * x).sum() - (x * x).sum() / 2) / len(W) ** 0.5 for w in W]

    rows = []
    for q_i in q:
        weights = [sum(a * b for a, b in zip(features(q_i), features(k_j), strict=True)) for k_j in k]
        rows.append(sum(w * v_j for w, v_j in zip(weights, v, strict=True)) / sum(weights))
    return torch.stack(rows)


def test_equals_the_sum_over_pairs_in_output_and_gradient():
    score = RandomFeatures(3, 5, scale=1.0, norm=2.0).double()
    shapes = ((7, 3), (11, 3), (11, 2))
    given = [torch.randn(1, 1, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    out = Attend(score)(*given)
    expected = naive(score, *(x[0, 0] for x in given))
    torch.testing.assert_close(out[0, 0], expected)
    direction = torch.randn_like(expected)
    got = torch.autograd.grad(out, given, direction[None, None])
    for one, other in zip(got, torch.autograd.grad(expected, given, direction), strict=True):
        torch.testing.assert_close(one, other)


def test_rows_of_the_matrix_are_orthogonal_in_blocks_and_of_the_asked_length():
    weight = RandomFeatures(5, 13, norm=3.0).weight
    assert weight.shape == (13, 5)
    for at in (0, 5, 10):
        block = weight[at : at + 5]
        torch.testing.assert_close(block @ block.T, 9 * torch.eye(len(block)), atol=1e-5, rtol=0)
    torch.testing.assert_close(RandomFeatures(7, 4).weight.norm(dim=1), torch.full((4,), 7**0.5))


def test_many_features_approach_the_scaled_dot_product():
    q, k = 0.6 * torch.randn(2, 1, 1, 17, 16, dtype=torch.float64)
    exact = ScaledDot()(q, k).softmax(-1)
    errors = []
    for num_features in (16, 256, 4096):
        logits = RandomFeatures(16, num_features).double()(q, k)
        errors.append((logits.softmax(-1) - exact).abs().sum(-1).mean().item() / 2)
    assert errors[0] > 1.5 * errors[1] > 1.5 * errors[2]
    assert errors[2] < 0.03


def test_is_no_parameter_and_is_saved():
    score = RandomFeatures(5, 3)
    assert not list(score.parameters())
    assert list(score.state_dict()) == ["weight"]


def test_long_queries_and_keys_neither_overflow_nor_vanish():
    """|x|²/2 is 5,000 here: a bare exponential would be 0 / 0."""
    large = call()
    large = replace(
        large, q_BHNK=large.q_BHNK.float() * 40, k_BHMK=large.k_BHMK.float() * 40, v_BHMV=large.v_BHMV.float()
    )
    out = run(large)
    assert choose(large).name == "features"
    assert out.isfinite().all()
    lowest, highest = large.v_BHMV.amin(-2, keepdim=True), large.v_BHMV.amax(-2, keepdim=True)
    assert (out >= lowest - 1e-4).all() and (out <= highest + 1e-4).all()
    for grad in torch.autograd.grad(out.sum(), (large.q_BHNK, large.k_BHMK, large.v_BHMV)):
        assert grad.isfinite().all()


def test_rows_without_any_key_are_zero_with_zero_gradients():
    valid = torch.ones(2, N, dtype=torch.bool)
    valid[1] = False
    padded = replace(call(), valid_BM=valid)
    assert choose(padded).name == "features"
    out = run(padded)
    assert torch.equal(out[1], torch.zeros_like(out[1])) and out[0].abs().sum() > 0
    for grad in torch.autograd.grad(out.sum(), (padded.q_BHNK, padded.k_BHMK, padded.v_BHMV)):
        assert grad.isfinite().all() and not grad[1].any()


def test_dropout_runs_where_the_weights_are_computed():
    dropped = replace(call(), dropout=0.3)
    assert choose(dropped).name == "reference"
    one_hot = torch.eye(N, dtype=torch.float64).expand(2, H, N, N)
    weights = reference.weights(dropped)
    got = run(replace(dropped, v_BHMV=one_hot))
    kept = got > 0
    torch.testing.assert_close(got[kept], weights[kept] / 0.7)
    assert 0.6 < kept.double().mean() < 0.8


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 1e-2), (torch.bfloat16, 6e-2), (torch.float32, 1e-5)])
def test_dtype_follows_the_input(dtype, tolerance):
    exact = call("padding")
    rounded = replace(exact, **{x: getattr(exact, x).to(dtype) for x in ("q_BHNK", "k_BHMK", "v_BHMV")})
    with forced("features"):
        out = run(rounded)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), reference.run(exact), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("mode", ["observe", "differentiate"])
def test_the_weights_that_are_never_computed_can_be_recorded(mode):
    q, k, v = torch.randn(3, 2, H, 5, K)
    attend = Attend(RandomFeatures(K, 6))
    plain = attend(q, k, v)
    with record(attend, mode=mode) as maps:
        out = attend(q, k, v)
    torch.testing.assert_close(out, plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(maps[0].sum(-1), torch.ones(2, H, 5))
    torch.testing.assert_close(maps[0] @ v, plain, atol=1e-5, rtol=1e-5)


def test_cost_grows_with_the_tokens_and_not_with_their_square():
    """The matrix of 20,000 × 20,000 weights would take 1.6 GB."""
    x = torch.randn(1, 1, 20_000, 8)
    out = Attend(RandomFeatures(8, 4))(x, x, x)
    assert out.shape == x.shape
    assert F.cosine_similarity(out[0, 0, 0], out[0, 0, 1], dim=0).isfinite()
