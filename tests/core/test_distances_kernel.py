"""Distances by products: the reference's numbers, also where a query is a key, and only where no gradient is wanted."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from mirada.core import Distance, GivenBias, Mask, causal, full
from mirada.core.heads import HeadMixing
from mirada.core.kernels import choose, distances, forced, reference, run
from mirada.core.kernels.call import Call
from mirada.errors import MiradaError
from tests.core.crossproduct import combinations, make_call

B, H, N, M, K, V = 2, 3, 53, 71, 7, 5


def call(dtype=torch.float64, **changed) -> Call:
    """Keys far from the origin, some of which are queries, and one all but a query."""
    torch.manual_seed(5)
    q, k, v = (torch.randn(B, H, *size, dtype=dtype) for size in ((N, K), (M, K), (M, V)))
    k[:, :, ::7] = q[:, :, : len(k[0, 0, ::7])]
    k[:, :, 1] = q[:, :, 0] + 1e-5
    score = Distance(H, 3.0).to(dtype).requires_grad_(False)
    with torch.no_grad():
        score.log_sharpness.add_(torch.tensor([0.0, 1.0, -2.0])[:, None, None])
    return replace(Call(q + 30, k + 30, v, score, full()), **changed)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
@pytest.mark.parametrize("padding", [False, True])
def test_equals_the_reference(dtype, close, padding):
    given = call(dtype)
    if padding:
        valid = torch.rand(B, M) > 0.3
        valid[1] = False  # a row of the batch without any key
        given = replace(given, valid_BM=valid)
    assert choose(given).name == "distances"
    torch.testing.assert_close(run(given), reference.run(given), atol=close, rtol=close)


def test_a_query_that_is_a_key_is_at_distance_zero():
    """In single precision, products alone are off by more than the distance of the key that is all but a query."""
    given = call(torch.float32)
    sharp = Distance(H, 1e5).requires_grad_(False)
    seen = run(replace(given, score=sharp))
    torch.testing.assert_close(seen[:, :, 0], given.v_BHMV[:, :, 0], atol=0.2, rtol=0.1)
    torch.testing.assert_close(seen[:, :, 2], given.v_BHMV[:, :, 14], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("at_once", [1, 17, 1000])
def test_the_number_of_queries_at_once_changes_nothing(monkeypatch, at_once):
    expected = run(call())
    monkeypatch.setattr(distances, "QUERIES_AT_ONCE", at_once)
    torch.testing.assert_close(run(call()), expected)


def test_whoever_wants_a_gradient_gets_one():
    wanting = call()
    wanting.q_BHNK.requires_grad_()
    assert choose(wanting).name == "reference"
    with torch.no_grad():
        assert choose(wanting).name == "distances"
    with forced("distances"), pytest.raises(MiradaError, match="gradient"):
        run(wanting)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"neighbours": Mask(torch.ones(N, M, dtype=torch.bool))}, "all keys that are real"),
        ({"neighbours": causal()}, "all keys that are real"),
        ({"position": GivenBias(torch.zeros(N, M))}, "adds to the logits"),
        ({"mix": HeadMixing(H)}, "mixes the weights"),
        ({"dropout": 0.5}, "dropout"),
        ({"q_BHNK": torch.zeros(B, H, N, K, dtype=torch.bfloat16)}, "too few digits"),
    ],
)
def test_refuses(changed, reason):
    assert reason in distances.refuses(call(**changed))


@torch.no_grad()
def test_equals_the_reference_over_the_cross_product():
    served = 0
    for names in combinations():
        given = make_call(*names)
        if distances.refuses(given) is None:
            served += 1
            torch.testing.assert_close(distances.run(given), reference.run(given), msg=lambda m, n=names: f"{n}: {m}")
    assert served >= 2
