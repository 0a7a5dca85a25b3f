"""Attention on graphs and grids (B17 to B19, B24, B26): each test is named after its item."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.core import (
    Additive,
    Attend,
    Attention,
    Averaged,
    Concatenated,
    Edges,
    GraphAdditive,
    Grid,
    Mask,
    ScaledDot,
    full,
    plane,
)  # fmt: skip
from tests.core.layers import B, D, H, K, M, N, attention, qkv, recorded


def complete_graph(queries: int, keys: int) -> Edges:
    i, j = torch.meshgrid(torch.arange(queries), torch.arange(keys), indexing="ij")
    return Edges(torch.stack([i.flatten(), j.flatten()]), queries, keys)


@pytest.mark.parametrize("score", [ScaledDot(), Additive(K, K, 19, H), GraphAdditive(K, H)], ids=repr)
def test_B17_dense_attention_is_attention_on_a_complete_graph(score):
    """Self-attention is the complete graph, attention on a memory the complete bipartite graph."""
    dense = attention(Concatenated(D, H, head_dim=K, memory_dim=D), score=score)
    x, y = torch.randn(B, N, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    torch.testing.assert_close(dense(x, neighbours=complete_graph(N, N)), dense(x, neighbours=full()))
    torch.testing.assert_close(dense(x, y, neighbours=complete_graph(N, M)), dense(x, y, neighbours=full()))


def test_B18_graph_attention_over_neighbour_lists():
    """E17: the sum and the softmax run over j ∈ N_i."""
    edges = Edges(torch.randint(0, M, (2, 19)), M, M)
    layer = attention(Concatenated(D, H, head_dim=K), neighbours=edges)
    x = torch.randn(B, M, D, dtype=torch.float64)
    q, k, v = layer.heads.queries(x), layer.heads.keys(x), layer.heads.values(x)
    out = torch.zeros(B, H, M, K, dtype=torch.float64)
    for i in range(M):
        near = edges.edge_2E[1][edges.edge_2E[0] == i]
        if len(near):
            alpha = (q[:, :, i, None] @ k[:, :, near].mT / math.sqrt(K)).softmax(-1)
            out[:, :, i] = (alpha @ v[:, :, near])[:, :, 0]
    torch.testing.assert_close(layer(x), layer.heads.join(out))

    adjacency = edges.dense(torch.ones(edges.edge_2E.shape[1], dtype=torch.bool))
    torch.testing.assert_close(layer(x, neighbours=Mask(adjacency)), layer(x))

    order = torch.randperm(M)
    renamed = Edges(order.argsort()[edges.edge_2E], M, M)
    torch.testing.assert_close(layer(x[:, order], neighbours=renamed), layer(x)[:, order])


def test_B19_grid_neighbourhood_has_4_6_9_cells_and_equals_unfold():
    """E18: the eight cells around and the cell itself, not those at distance one."""
    height, width = 5, 7
    places = plane(height, width)
    counts = Grid(1).allowed(places, places).sum(-1).view(height, width)
    expected = torch.full((height, width), 9)
    expected[[0, -1]] = 6
    expected[:, [0, -1]] = 6
    expected[[0, 0, -1, -1], [0, -1, 0, -1]] = 4
    assert torch.equal(counts, expected)

    q, k, v = qkv(queries=35, keys=35)

    def around(x: torch.Tensor) -> torch.Tensor:
        on_plane = x.transpose(2, 3).reshape(B * H, -1, height, width)
        return F.unfold(on_plane, 3, padding=1).view(B, H, x.shape[-1], 9, height * width)

    exists = around(torch.ones(B, H, 35, 1, dtype=torch.float64))[:, :, 0]
    logits = torch.einsum("bhnk,bhksn->bhsn", q, around(k)) / math.sqrt(K)
    alpha = logits.masked_fill(exists == 0, -torch.inf).softmax(2)
    expected_out = torch.einsum("bhsn,bhvsn->bhnv", alpha, around(v))
    torch.testing.assert_close(Attend(neighbours=Grid(1))(q, k, v, queries=places, keys=places), expected_out)


@pytest.mark.parametrize("averaged", [False, True], ids=["concatenated", "averaged"])
def test_B24_graph_attention_equals_torch_geometric(averaged):
    """Forward and gradient; one projection of PyG stands for our query, key and value projections."""
    from torch_geometric.nn import GATConv

    num_nodes, out_dim = 13, 7
    their = GATConv(D, out_dim, heads=H, concat=not averaged, dropout=0.0).double()
    nn.init.normal_(their.bias)
    source_target = torch.randint(0, num_nodes, (2, 41))
    source_target = torch.unique(source_target[:, source_target[0] != source_target[1]], dim=1)

    kind = Averaged if averaged else Concatenated
    widths = {"out_dim": H * out_dim} if not averaged else {}
    ours = Attention(kind(D, H, head_dim=out_dim, bias=False, **widths), score=GraphAdditive(out_dim, H)).double()
    with torch.no_grad():
        for projection in (ours.heads.to_q, ours.heads.to_k, ours.heads.to_v):
            projection.weight.copy_(their.lin.weight)
        ours.attend.score.query_weight.copy_(their.att_dst[0, :, :, None])
        ours.attend.score.key_weight.copy_(their.att_src[0, :, :, None])
        if averaged:
            ours.heads.out_bias.copy_(their.bias)
        else:
            ours.heads.to_out.weight.copy_(torch.eye(H * out_dim))
            ours.heads.to_out.bias.copy_(their.bias)
    loops = torch.arange(num_nodes).expand(2, -1)
    edges = Edges(torch.cat([source_target.flip(0), loops], dim=1), num_nodes, num_nodes)

    x = torch.randn(num_nodes, D, dtype=torch.float64, requires_grad=True)
    out, expected = ours(x[None], neighbours=edges)[0], their(x, source_target)
    torch.testing.assert_close(out, expected)
    noise = torch.randn_like(expected)
    their_x, their_W, their_a = torch.autograd.grad(expected, [x, their.lin.weight, their.att_src], noise)
    our_x, *our_W, our_a = torch.autograd.grad(
        out,
        [x, ours.heads.to_q.weight, ours.heads.to_k.weight, ours.heads.to_v.weight, ours.attend.score.key_weight],
        noise,
    )
    torch.testing.assert_close(our_x, their_x)
    torch.testing.assert_close(sum(our_W), their_W)
    torch.testing.assert_close(our_a[..., 0], their_a[0])


def test_B26_a_graph_must_be_given_and_costs_one_message_per_edge():
    edges = Edges(torch.randint(0, M, (2, 19)), M, M)
    x = torch.randn(B, M, D)
    layer = Attention(Concatenated(D, H, head_dim=K), neighbours=edges)
    assert recorded(layer, x).shape == (B, H, edges.edge_2E.shape[1])
    # Every edge is an explicit index besides: two integers that a complete graph does without.
    assert edges.edge_2E.numel() == 2 * edges.edge_2E.shape[1]
    assert edges.edge_2E.shape[1] < M * M
