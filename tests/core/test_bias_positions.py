"""Biases on the logits: Swin's table, MViT's decomposed tables, a bias written out."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from mirada.core import Attend, BiasTable, Decomposed, GivenBias, Places, line, plane
from mirada.errors import MiradaError

B, H, K = 2, 3, 7


def test_swin_index_grows_with_query_minus_key():
    height, width = 3, 5
    part = BiasTable((height, width), 1)
    with torch.no_grad():
        part.table[:, 0] = torch.arange(part.table.shape[0])
    places = plane(height, width)
    index = part.bias(torch.empty(B, 1, 15, K), places, places)[0, 0]
    for i, (row_i, column_i) in enumerate(places.coords_NA.tolist()):
        for j, (row_j, column_j) in enumerate(places.coords_NA.tolist()):
            down, right = row_i - row_j, column_i - column_j
            assert index[i, j] == (down + height - 1) * (2 * width - 1) + (right + width - 1)


def test_swin_bias_equals_transformers():
    swin = pytest.importorskip("transformers.models.swin.modeling_swin")
    side = 5
    theirs = swin.SwinRelativePositionBias(H, (side, side))
    torch.nn.init.normal_(theirs.relative_position_bias_table)
    ours = BiasTable((side, side), H)
    ours.load_state_dict({"table": theirs.relative_position_bias_table})
    bias = ours.bias(torch.empty(B, H, side**2, K), plane(side, side), plane(side, side))
    assert torch.equal(bias, theirs())


def test_bias_table_clips_offsets_beyond_its_size():
    part = BiasTable((3,), H)
    bias = part.bias(torch.empty(B, H, 11, K), line(11), line(11))[0]
    assert torch.equal(bias[:, 0, 2], bias[:, 0, 10])
    assert torch.equal(bias[:, 10, 8], bias[:, 10, 0])
    with pytest.raises(MiradaError, match="met places with 1 axes"):
        BiasTable((3, 5), H).bias(torch.empty(B, H, 11, K), line(11), line(11))


def decomposed_naive(q, row_table, column_table, query_size, key_size):
    """One number at a time, from tables that already have 2·max(n_q, n_k) − 1 rows."""

    def offset(i: int, j: int, n_q: int, n_k: int) -> int:
        return math.floor(i * max(n_k / n_q, 1) - j * max(n_q / n_k, 1) + (n_k - 1) * max(n_q / n_k, 1) + 1e-9)

    bias = q.new_zeros(*q.shape[:-1], math.prod(key_size))
    for i, (row_i, column_i) in enumerate(plane(*query_size).coords_NA.tolist()):
        for j, (row_j, column_j) in enumerate(plane(*key_size).coords_NA.tolist()):
            down = row_table[offset(row_i, row_j, query_size[0], key_size[0])]
            right = column_table[offset(column_i, column_j, query_size[1], key_size[1])]
            bias[..., i, j] = q[..., i, :] @ down + q[..., i, :] @ right
    return bias


SIZES = [((3, 5), (3, 5)), ((4, 6), (2, 3)), ((2, 3), (4, 6)), ((3, 7), (5, 2)), ((8, 2), (3, 5))]


@pytest.mark.parametrize(("query_size", "key_size"), SIZES, ids=str)
def test_decomposed_equals_naive_form(query_size, key_size):
    part = Decomposed(K, query_size, key_size).double()
    q = torch.randn(B, H, math.prod(query_size), K, dtype=torch.float64)
    expected = decomposed_naive(q, part.row_table, part.column_table, query_size, key_size)
    torch.testing.assert_close(part.bias(q, plane(*query_size), plane(*key_size)), expected)


def test_decomposed_is_the_same_for_some_tokens_as_for_whole_grids():
    part = Decomposed(K, (4, 6), (2, 3)).double()
    q = torch.randn(B, H, 24, K, dtype=torch.float64)
    queries, keys = plane(4, 6), plane(2, 3)
    some_i, some_j = torch.tensor([17, 3, 5]), torch.tensor([4, 0])
    whole = part.bias(q, queries, keys)
    some = part.bias(
        q[:, :, some_i],
        Places(queries.index_N[some_i], queries.coords_NA[some_i], queries.size),
        Places(keys.index_N[some_j], keys.coords_NA[some_j], keys.size),
    )
    torch.testing.assert_close(some, whole[:, :, some_i][..., some_j])


def test_decomposed_resizes_its_tables_for_another_size():
    part = Decomposed(K, (4, 6), (2, 3)).double()
    q = torch.randn(B, H, 5 * 9, K, dtype=torch.float64)
    row_table, column_table = (
        F.interpolate(table.T[None], size=num_rows, mode="linear")[0].T
        for table, num_rows in ((part.row_table, 2 * 5 - 1), (part.column_table, 2 * 9 - 1))
    )
    expected = decomposed_naive(q, row_table, column_table, (5, 9), (5, 3))
    torch.testing.assert_close(part.bias(q, plane(5, 9), plane(5, 3)), expected)


def test_decomposed_with_class_token_on_both_grids():
    part = Decomposed(K, (4, 6), (2, 3)).double()
    q, k = torch.randn(B, H, 1 + 24, K).double(), torch.randn(B, H, 1 + 6, K).double()
    queries, keys = plane(4, 6, num_extra=1), plane(2, 3, num_extra=1)
    logits = q @ k.mT / math.sqrt(K)
    logits[:, :, 1:, 1:] += decomposed_naive(q[:, :, 1:], part.row_table, part.column_table, (4, 6), (2, 3))
    torch.testing.assert_close(Attend(position=part)(q, k, k, queries=queries, keys=keys), logits.softmax(-1) @ k)


def test_given_bias_is_added_and_extra_tokens_get_none():
    q, k = torch.randn(2, B, H, 7, K)
    bias = torch.randn(H, 7, 7)
    torch.testing.assert_close(
        Attend(position=GivenBias(bias))(q, k, k), (q @ k.mT / math.sqrt(K) + bias).softmax(-1) @ k
    )
    places = plane(2, 3, num_extra=1)
    inner = bias.clone()
    inner[:, 0], inner[:, :, 0] = 0, 0
    torch.testing.assert_close(
        Attend(position=GivenBias(bias))(q, k, k, queries=places, keys=places),
        (q @ k.mT / math.sqrt(K) + inner).softmax(-1) @ k,
    )
