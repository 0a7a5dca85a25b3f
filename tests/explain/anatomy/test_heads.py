"""Entropy, divergence and landmarks of heads, against hand-computed numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mirada.explain.anatomy.divergence import head_divergence
from mirada.explain.anatomy.entropy import mean_entropy
from mirada.explain.anatomy.heads import labels
from mirada.explain.anatomy.landmarks import attention_to
from mirada.explain.anatomy.similarity import map_similarity
from mirada.explain.anatomy.uniform import are_distributions, seen, uniform
from mirada.explain.looks import Tokens
from tests.explain.anatomy.made_looks import even, look, random_rows


@given(st.integers(1, 40), st.integers(1, 7))
def test_entropy_of_uniform_attention_is_the_logarithm_of_the_number_of_keys(num_keys, num_queries):
    found = even(Tokens((num_queries,)), Tokens((num_keys,)))
    assert mean_entropy(found.weights_BHNM).numpy() == pytest.approx(math.log(num_keys), abs=1e-5)


def test_entropy_by_hand_and_of_one_key():
    rows = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    assert float(mean_entropy(rows.expand(1, 1, 2, 3))) == pytest.approx((1.5 * math.log(2) + 0) / 2)


def test_entropy_is_that_of_rows_that_sum_to_one():
    rows = random_rows(2, 3, 5, 7)
    torch.testing.assert_close(mean_entropy(3 * rows), mean_entropy(rows))


def test_uniform_reference_knows_whom_a_causal_head_can_see():
    allowed = torch.ones(5, 5).tril()
    weights = random_rows(2, 3, 5, 5) * allowed
    found = look(weights / weights.sum(-1, keepdim=True), Tokens((5,)))
    assert seen(found.weights_BHNM).equal(allowed.bool())
    reference = uniform(found).weights_BHNM[0, 0]
    torch.testing.assert_close(reference, (allowed / torch.arange(1, 6)[:, None]).double())
    expected = sum(math.log(n) for n in range(1, 6)) / 5
    assert float(mean_entropy(uniform(found).weights_BHNM)) == pytest.approx(expected)


def test_divergence_of_heads():
    one, other = torch.tensor([1.0, 0, 0, 0]), torch.tensor([0, 0.5, 0.5, 0])
    half = torch.tensor([0.5, 0.5, 0, 0])
    heads_TNM = torch.stack([one, other, half]).expand(7, 3, 4).transpose(0, 1)
    found = head_divergence(heads_TNM)
    assert found.diagonal().abs().max() == 0
    torch.testing.assert_close(found, found.T)
    assert float(found[0, 1]) == pytest.approx(math.log(2))
    # one and half: the middle is (¾, ¼, 0, 0).
    middle = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert float(found[0, 2]) == pytest.approx(middle - math.log(2) / 2)


def test_divergence_is_within_its_range():
    found = head_divergence(random_rows(1, 11, 5, 7)[0])
    assert found.shape == (11, 11)
    assert found.min() >= 0 and found.max() <= math.log(2)


def test_landmarks_of_a_text():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]).expand(2, 3, 3, 3)
    shares = {name: float(share[0, 0]) for name, share in attention_to(look(weights, Tokens((3,)))).items()}
    assert shares == pytest.approx(
        {
            "first": (0.3 + 0.6) / 2,
            "self": (0.1 + 0.3 + 0.2) / 3,
            "previous": (0.3 + 0.2) / 2,
            "next": (0.2 + 0.4) / 2,
        }
    )


def test_landmarks_of_an_image_are_the_extra_tokens_and_oneself():
    rows = random_rows(2, 3, 7, 7)
    found = attention_to(look(rows, Tokens((2, 3), 1)))
    assert set(found) == {"extra", "self"}
    torch.testing.assert_close(found["extra"], rows[:, :, 1:, 0].mean(-1).double())
    torch.testing.assert_close(found["self"], rows.diagonal(0, -2, -1)[..., 1:].mean(-1).double())


def test_between_different_tokens_nobody_is_oneself():
    assert attention_to(even(Tokens((2, 3)), Tokens((1, 2)))) == {}
    across = look(random_rows(1, 1, 5, 5), Tokens((5,)), kind="cross")
    assert attention_to(across) == {}


def test_weights_that_are_no_shares_are_told():
    rows = random_rows(1, 2, 3, 5)
    assert are_distributions(rows)
    assert not are_distributions(rows - 0.3)
    assert not are_distributions(2 * rows)


def test_similarity_of_maps_by_hand():
    one = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    other = torch.tensor([[0.6, 0.4], [0.8, 0.2]])
    found = map_similarity(torch.stack([one, other])[:, None, None])
    columns = [(0.6 / 1.0), (0.2 / math.hypot(0.4, 0.2))]
    torch.testing.assert_close(found.diagonal(), torch.ones(2, dtype=torch.float64))
    assert float(found[0, 1]) == pytest.approx(sum(columns) / 2)
    assert float(found[1, 0]) == pytest.approx(float(found[0, 1]))


def test_collapsed_layers_are_alike_and_keys_that_nobody_sees_do_not_count():
    rows = random_rows(2, 3, 5, 7)
    collapsed = torch.stack([rows, rows, rows])
    torch.testing.assert_close(map_similarity(collapsed), torch.ones(3, 3, dtype=torch.float64))
    rows[..., 2] = 0
    unseen = torch.stack([rows, rows])
    torch.testing.assert_close(map_similarity(unseen), torch.ones(2, 2, dtype=torch.float64))


def test_layers_are_numbered_by_what_they_do():
    own, target, across = (even(Tokens((5,)), Tokens((7,))) for _ in range(3))
    target = look(target.weights_BHNM, target.queries, target.keys, kind="target")
    across = look(across.weights_BHNM, across.queries, across.keys, kind="cross")
    pooling = even(Tokens((1,)), Tokens((7,)))
    assert labels([own, own, target, across, target, across, pooling]) == [
        *("1", "2", "target 1", "cross 1", "target 2", "cross 2", "pool"),
    ]
