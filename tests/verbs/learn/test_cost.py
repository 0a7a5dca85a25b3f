"""Pairs counted without a mask are those of the mask."""

from __future__ import annotations

import pytest

from mirada.core import attention_flops, line, plane
from mirada.verbs.learn import cost
from mirada.verbs.learn.cost import count_on_a_line, count_on_a_plane
from mirada.verbs.learn.parts import checked, make_neighbours

ON_A_LINE = [
    [{"kind": "full"}],
    [{"kind": "causal"}],
    [{"kind": "window", "reach": 3}],
    [{"kind": "window", "reach": 3}, {"kind": "causal"}],
    [{"kind": "strided", "stride": 5}],
    [{"kind": "strided", "stride": 5}, {"kind": "window", "reach": 11}],
    [{"kind": "fixed", "block": 5, "num_summary": 2}],
    [{"kind": "fixed", "block": 5, "num_summary": 2}, {"kind": "not self"}],
    [{"kind": "fixed", "block": 7, "num_summary": 0}, {"kind": "window", "reach": 4}],
    [{"kind": "not self"}, {"kind": "window", "reach": 2}],
]
ON_A_PLANE = [
    [{"kind": "grid", "radius": 2}],
    [{"kind": "grid", "radius": 2}, {"kind": "causal"}],
    [{"kind": "windows", "size": 3, "shift": 0}],
    [{"kind": "windows", "size": 3, "shift": 1}, {"kind": "not self"}],
    [{"kind": "windows", "size": 4, "shift": 2}, {"kind": "window", "reach": 6}],
]


@pytest.mark.parametrize("rules", ON_A_LINE, ids=str)
@pytest.mark.parametrize("length", [1, 2, 13, 37])
def test_pairs_on_a_line(rules, length):
    rules = checked(rules)
    assert count_on_a_line(rules, length) == make_neighbours(rules, length).allowed(line(length), line(length)).sum()


@pytest.mark.parametrize("rules", ON_A_PLANE, ids=str)
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 5), (8, 11)])
def test_pairs_on_a_plane(rules, size):
    rules = checked(rules)
    places = plane(*size)
    assert count_on_a_plane(rules, *size) == make_neighbours(rules, len(places)).allowed(places, places).sum()


def test_operations_are_those_of_the_formula():
    grown = cost(dim=24)
    assert grown.lengths == [2**power for power in range(1, 17)]
    assert grown.flops == grown.flops_full == [attention_flops(n, 24) for n in grown.lengths]
    windows = cost([{"kind": "windows", "size": 4}], dim=24)
    assert windows.flops[-1] == attention_flops(65_536, 24, window=4)


def test_a_window_grows_with_n_and_full_attention_with_its_square():
    grown = cost([{"kind": "window", "reach": 2}])
    assert grown.pairs[-1] == 5 * 65_536 - 6
    assert grown.pairs_full[-1] == 65_536**2


def test_a_graph_keeps_its_mean_number_of_neighbours():
    grown = cost([{"kind": "edges", "edges": [(0, 1), (1, 2), (2, 0)]}], num_tokens=3)
    assert grown.pairs == grown.lengths
