"""How far heads look, against sums written out."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mirada.errors import MiradaError
from mirada.explain.anatomy.distance import cells, distances, mean_distance, uniform_distance
from mirada.explain.anatomy.uniform import uniform
from mirada.explain.looks import Tokens
from tests.explain.anatomy.made_looks import even, look, random_rows


def brute_force(weights_BHNM, queries: Tokens, keys: Tokens, cell_q, cell_k, renormalised: bool):
    """One number at a time."""
    batch, num_heads = weights_BHNM.shape[:2]
    result = torch.zeros(batch, num_heads, dtype=torch.float64)
    for b in range(batch):
        for h in range(num_heads):
            rows = []
            for i in range(math.prod(queries.size)):
                far = total = 0.0
                for j in range(math.prod(keys.size)):
                    weight = float(weights_BHNM[b, h, queries.num_extra + i, keys.num_extra + j])
                    y, x = (i // queries.size[1] + 0.5) * cell_q[0], (i % queries.size[1] + 0.5) * cell_q[1]
                    v, u = (j // keys.size[1] + 0.5) * cell_k[0], (j % keys.size[1] + 0.5) * cell_k[1]
                    far += weight * math.hypot(y - v, x - u)
                    total += weight
                rows.append(far / total if renormalised else far)
            result[b, h] = sum(rows) / len(rows)
    return result


@pytest.mark.parametrize("rows", ["renormalised", "as they are"])
def test_distance_is_the_weighted_sum_over_cell_centres(rows):
    queries, keys = Tokens((5, 7), 2), Tokens((3, 4), 1)
    found = look(random_rows(2, 3, 37, 13), queries, keys)
    distance_NM = distances(found, extent=(20, 28), patch=(4, 4))
    # 28 pixels are 7 cells of 4 or 4 cells of 8; 20 pixels are 5 cells of 4 or, the last in part, 3 of 8.
    expected = brute_force(found.weights_BHNM, queries, keys, (4, 4), (8, 8), rows == "renormalised")
    torch.testing.assert_close(mean_distance(found, distance_NM, rows), expected, rtol=1e-5, atol=1e-5)


@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from([1.0, 2.5, 16.0]), st.integers(0, 2))
def test_uniform_attention_has_the_closed_form_distance(height, width, side, num_extra):
    tokens = Tokens((height, width), num_extra)
    cell = (side, 2 * side)
    found = even(tokens)
    centres = [((r + 0.5) * cell[0], (c + 0.5) * cell[1]) for r in range(height) for c in range(width)]
    pairs = [math.dist(one, other) for one in centres for other in centres]
    expected = sum(pairs) / len(pairs)
    assert uniform_distance((height, width), cell) == pytest.approx(expected)
    distance_NM = torch.tensor(pairs, dtype=torch.float64).reshape(height * width, -1)
    assert mean_distance(found, distance_NM).numpy() == pytest.approx(expected, rel=1e-5)
    assert mean_distance(uniform(found), distance_NM).item() == pytest.approx(expected, rel=1e-6)


def test_uniform_distance_of_small_grids_by_hand():
    # 2 × 2: of 16 pairs 4 are oneself, 8 are neighbours, 4 are across.
    assert uniform_distance((2, 2), (1, 1)) == pytest.approx((8 + 4 * math.sqrt(2)) / 16)
    assert uniform_distance((2, 2), (16, 16)) == pytest.approx(16 * (8 + 4 * math.sqrt(2)) / 16)
    for length in (1, 2, 5, 11):
        assert uniform_distance((length,), (1.0,)) == pytest.approx((length**2 - 1) / (3 * length))


def test_looking_at_oneself_is_distance_zero():
    tokens = Tokens((3, 5), 1)
    found = look(torch.eye(16).expand(2, 3, 16, 16), tokens)
    assert mean_distance(found, distances(found, (6, 10), (2, 2))).abs().max() == 0


def test_distance_is_between_zero_and_the_diagonal():
    tokens = Tokens((5, 3))
    corner = torch.zeros(1, 1, 15, 15)
    corner[..., 14] = 1
    found = look(corner, tokens)
    distance_NM = distances(found, (10, 6), (2, 2))
    assert float(distance_NM.max()) == pytest.approx(math.hypot(8, 4))
    assert 0 <= float(mean_distance(found, distance_NM)) <= math.hypot(8, 4)
    only_first = look(corner[:, :, :1], Tokens((1, 1)), tokens)
    assert float(mean_distance(only_first, distance_NM[:1])) == pytest.approx(math.hypot(8, 4))


def test_attention_to_a_class_token_is_given_to_the_others_or_counts_as_none():
    """Half of every row goes to the class token."""
    tokens = Tokens((2, 2), 1)
    weights = torch.full((1, 1, 5, 5), 0.125)
    weights[..., 0] = 0.5
    found = look(weights, tokens)
    distance_NM = distances(found, (2, 2))
    whole = uniform_distance((2, 2), (1, 1))
    assert float(mean_distance(found, distance_NM, "renormalised")) == pytest.approx(whole)
    assert float(mean_distance(found, distance_NM, "as they are")) == pytest.approx(whole / 2)


def test_a_row_that_looks_at_the_class_token_only_is_left_out():
    tokens = Tokens((1, 2), 1)
    rows = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    found = look(rows.expand(1, 1, 3, 3), tokens)
    assert float(mean_distance(found, distances(found, (3, 6), (3, 3)))) == pytest.approx(3)
    nowhere = look(torch.tensor([1.0, 0, 0]).expand(1, 1, 3, 3), tokens)
    assert mean_distance(nowhere, distances(nowhere, (3, 6), (3, 3))).isnan().all()


def test_distance_in_a_text_is_the_number_of_tokens_between():
    weights = torch.zeros(1, 1, 5, 5)
    weights[..., 0] = 1
    found = look(weights, Tokens((5,)))
    assert float(mean_distance(found, distances(found))) == pytest.approx((0 + 1 + 2 + 3 + 4) / 5)


def test_cells_are_those_that_cover_the_side():
    assert cells(Tokens((7, 4)), (27, 32), (4, 4)) == (4.0, 8.0)  # 27 is padded to 28
    assert cells(Tokens((4,)), (28,), (2,)) == (8.0,)  # 14 → 7 → 4 tokens as grids are halved and padded
    assert cells(Tokens((3,)), (20,), (6,)) == (pytest.approx(20 / 3),)  # no 6 · 2^k gives three
    assert cells(Tokens((9,)), None) == (1.0,)


def test_unknown_choice_of_rows_is_refused():
    found = even(Tokens((2, 2)))
    with pytest.raises(MiradaError, match="'renormalised' or 'as they are'"):
        mean_distance(found, distances(found, (2, 2)), "normalised")
