"""Relevance goes down to finer tokens without loss, and to nowhere from tokens that have no origin."""

import pytest
import torch

from mirada.errors import MiradaError
from mirada.explain.carry import carried, origins, parents
from mirada.explain.looks import Tokens


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (Tokens((3, 4)), Tokens((5, 7))),  # halved, odd sides
        (Tokens((2, 2), 1), Tokens((7, 5), 1)),  # a quarter
        (Tokens((5, 7)), Tokens((5, 7))),
        (Tokens((35,)), Tokens((5, 7))),  # a layer that pools does not know of rows
        (Tokens((2, 3, 2)), Tokens((3, 5, 4))),
    ],
)
def test_nothing_is_lost_on_the_way_down(above, below):
    r_BRN = torch.rand(2, 3, len(above))
    r_BRX = carried(r_BRN, above, below)
    assert r_BRX.shape == (2, 3, len(below))
    torch.testing.assert_close(r_BRX.sum(-1), r_BRN.sum(-1))
    assert origins(above, below).all()


def test_a_coarse_cell_is_shared_by_the_fine_cells_in_it():
    # 3 × 2 from 5 × 3, stride 2: the last row and column hold one cell of a pair.
    parent_X = parents(Tokens((3, 2)), Tokens((5, 3))).view(5, 3)
    assert parent_X.tolist() == [[0, 0, 1], [0, 0, 1], [2, 2, 3], [2, 2, 3], [4, 4, 5]]
    r_11N = torch.tensor([[[4.0, 2.0, 8.0, 6.0, 1.0, 5.0]]])
    found = carried(r_11N, Tokens((3, 2)), Tokens((5, 3))).view(5, 3)
    assert found.tolist() == [[1, 1, 1], [1, 1, 1], [2, 2, 3], [2, 2, 3], [0.5, 0.5, 5]]


def test_padding_carries_nothing():
    above, below = Tokens((6, 4)), Tokens((5, 3))
    is_inside = origins(above, below).view(6, 4)
    assert is_inside[:5, :3].all() and not is_inside[5].any() and not is_inside[:, 3].any()
    r_11N = torch.rand(1, 1, 24)
    torch.testing.assert_close(carried(r_11N, above, below).view(5, 3), r_11N.view(6, 4)[:5, :3])


def test_a_class_token_that_joins_late_and_a_query_that_pools_carry_nothing():
    late = origins(Tokens((3, 2), 1), Tokens((3, 2)))
    assert late.tolist() == [False] + [True] * 6
    assert not origins(Tokens((1,)), Tokens((3, 2), 1)).any()
    assert not carried(torch.ones(1, 1, 1), Tokens((1,)), Tokens((3, 2), 1)).any()


def test_a_class_token_stays_itself():
    found = carried(torch.tensor([[[7.0, 1.0, 2.0]]]), Tokens((1, 2), 1), Tokens((1, 4), 1))
    assert found.tolist() == [[[7.0, 0.5, 0.5, 1.0, 1.0]]]


def test_lines_of_different_length_are_refused():
    with pytest.raises(MiradaError, match="where the ones come from cannot be told"):
        parents(Tokens((5,)), Tokens((7,)))
