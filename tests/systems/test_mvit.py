"""MViTv2: the paper's parameter counts, pooled attention by hand, grids that get coarser, where the width grows."""

import math

import pytest
import torch
from torch.nn import functional as F

from mirada.core import record
from mirada.errors import MiradaError
from mirada.nn.pooled_attention import PooledAttention
from mirada.systems import card, create
from tests.systems.common_checks import CHECKS, images, maker
from tests.weights.references import shaken

PUBLISHED = {"T": 24_173_320, "S": 34_870_216, "B": 51_472_744, "L": 217_992_952}


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_the_paper(size, count):
    with torch.device("meta"):
        model = create("mvit", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def pooled_by_hand(x_NK, pooling, grid, stride):
    """One token of the new grid at a time: the nine cells around it, zeros outside."""
    rows, columns = -(-grid[0] // stride), -(-grid[1] // stride)
    out = []
    for row in range(rows):
        for column in range(columns):
            total = torch.zeros_like(x_NK[0])
            for a in range(3):
                for b in range(3):
                    r, c = row * stride + a - 1, column * stride + b - 1
                    if 0 <= r < grid[0] and 0 <= c < grid[1]:
                        total = total + pooling.conv.weight[:, 0, a, b] * x_NK[r * grid[1] + c]
            out.append(total)
    pooled = torch.stack(out)
    return F.layer_norm(pooled, pooled.shape[-1:], pooling.norm.weight, pooling.norm.bias, 1e-6), (rows, columns)


@pytest.mark.parametrize(("query_stride", "key_stride"), [(1, 4), (2, 2), (2, 1)])
def test_pooled_attention_by_hand(query_stride, key_stride):
    torch.manual_seed(5)
    grid, dim, heads, out_dim = (5, 7), 6, 2, 8
    layer = PooledAttention(dim, heads, grid, query_stride=query_stride, key_stride=key_stride, out_dim=out_dim)
    layer = shaken(layer).double()
    x = torch.randn(1, 35, dim, dtype=torch.float64)
    joined = []
    for h in range(heads):
        own = slice(4 * h, 4 * h + 4)
        q, k, v = (
            F.linear(x[0], to.weight[own], to.bias[own])
            for to in (layer.heads.to_q, layer.heads.to_k, layer.heads.to_v)
        )
        q, (rows, columns) = pooled_by_hand(q, layer.pool_q, grid, query_stride)
        k, (key_rows, key_columns) = pooled_by_hand(k, layer.pool_k, grid, key_stride)
        v, _ = pooled_by_hand(v, layer.pool_v, grid, key_stride)
        logits = q @ k.T / math.sqrt(4)
        for i in range(rows * columns):
            for j in range(key_rows * key_columns):
                for table, n_q, n_k, a, b in (
                    (layer.attend.position.row_table, rows, key_rows, i // columns, j // key_columns),
                    (layer.attend.position.column_table, columns, key_columns, i % columns, j % key_columns),
                ):
                    up_q, up_k = max(n_k / n_q, 1), max(n_q / n_k, 1)
                    logits[i, j] = logits[i, j] + q[i] @ table[int(a * up_q - b * up_k + (n_k - 1) * up_k + 1e-6)]
        joined.append(logits.softmax(-1) @ v + q)
    expected = layer.heads.to_out(torch.cat(joined, dim=-1))
    out, new_grid = layer(x, grid)
    assert new_grid == (rows, columns)
    torch.testing.assert_close(out[0], expected)


def test_grids_of_queries_and_keys_by_stage():
    """At 32 px with patches of 2: 16 × 16 tokens look at 4 × 4 keys, then 8 × 8 at 8 × 8, then at 4 × 4 …"""
    model = create("mvit", "nano", image_size=(32, 32), in_channels=1, num_classes=2, depths=(1, 2, 2)).eval()
    with record(model) as maps:
        model(torch.randn(2, 1, 32, 32))
    assert [tuple(maps[name].shape[1:]) for name in maps] == [
        (1, 256, 16),
        (2, 64, 64),
        (2, 64, 16),
        (4, 16, 64),
        (4, 16, 16),
    ]
    assert model.grid(torch.empty(1, 1, 32, 32)) == (4, 4)
    assert model.grid(torch.empty(1, 1, 35, 50)) == (5, 7)


@pytest.mark.parametrize(
    ("widening", "widths"),
    [
        ("attention", [(8, 8, 8), (8, 8, 8), (8, 16, 16), (16, 16, 16)]),
        ("mlp", [(8, 8, 8), (8, 8, 16), (16, 16, 16), (16, 16, 16)]),
    ],
)
def test_where_the_width_grows(widening, widths):
    model = maker(card("mvit"), widening=widening, depths=(2, 2))()
    layers = [layer for stage in model.stages for layer in stage]
    found = [
        (layer.attention_norm.normalized_shape[0], layer.mlp_norm.normalized_shape[0], layer.mlp.contract.out_features)
        for layer in layers
    ]
    assert found == widths
    assert model(images()).shape == (3, 5)


@pytest.mark.parametrize("check", ["learns_with_every_parameter", "accepts_any_image_size", "recording"])
def test_common_checks_hold_where_the_mlp_widens(check):
    CHECKS[check](maker(card("mvit"), widening="mlp"))


def test_a_stage_needs_a_layer():
    with pytest.raises(MiradaError, match=r"depths=\(1, 0\): every stage must have a layer"):
        create("mvit", image_size=8, in_channels=1, num_classes=2, depths=(1, 0))
    with pytest.raises(MiradaError, match=r"widening='mlps'.*: must be one of attention, mlp"):
        create("mvit", image_size=8, in_channels=1, num_classes=2, widening="mlps")
