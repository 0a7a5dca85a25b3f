"""GAT against torch-geometric's layer, its symmetries, its recorded weights, and one run on Cora."""

from __future__ import annotations

import json

import pytest
import torch
from benchmarks.gat_cora import Patience, Protocol, prepare, results_of, train
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from mirada.core import Edges, attention_layers, record
from mirada.errors import MiradaError
from mirada.systems.gat import GAT

N, D, C, K, H = 29, 13, 5, 7, 3
HEADS_OUT = 2


def graph_with_loops(num_edges: int = 67) -> torch.Tensor:
    return torch.cat([torch.randint(0, N, (2, num_edges)), torch.arange(N).expand(2, -1)], dim=1).unique(dim=1)


def small_gat(depth: int = 2, dropout: float = 0.6) -> GAT:
    model = GAT(D, C, hidden_dim=K, num_heads=H, depth=depth, num_out_heads=HEADS_OUT, dropout=dropout).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.bias)
    return model.eval()


class GeometricGAT(torch.nn.Module):
    """The same network of torch-geometric's layers, with the weights of ours."""

    def __init__(self, ours: GAT) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for layer in ours.layers:
            is_last = layer is ours.layers[-1]
            width = layer.project.out_features // layer.num_heads
            conv = GATConv(
                layer.project.in_features, width, layer.num_heads, concat=not is_last, add_self_loops=False
            ).double()
            with torch.no_grad():
                conv.lin.weight.copy_(layer.project.weight)
                conv.att_dst.copy_(layer.attend.score.query_weight[None, :, :, 0])
                conv.att_src.copy_(layer.attend.score.key_weight[None, :, :, 0])
                conv.bias.copy_(layer.bias)
            self.layers.append(conv)

    def forward(self, x: torch.Tensor, edge_2E: torch.Tensor) -> torch.Tensor:
        # Its messages go from row 0 to row 1: the one who looks is the second.
        for conv in self.layers[:-1]:
            x = F.elu(conv(x, edge_2E.flip(0)))
        return self.layers[-1](x, edge_2E.flip(0))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_equals_torch_geometric_in_output_and_gradient(depth):
    ours = small_gat(depth)
    theirs = GeometricGAT(ours).eval()
    edge_2E = graph_with_loops()
    x, other_x = (torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    x.requires_grad_(), other_x.requires_grad_()
    out, expected = ours(x, Edges(edge_2E, N, N)), theirs(other_x, edge_2E)
    assert out.shape == (N, C)
    torch.testing.assert_close(out, expected)
    direction = torch.randn(N, C, dtype=torch.float64)
    out.backward(direction), expected.backward(direction)
    torch.testing.assert_close(x.grad, other_x.grad)
    for layer, conv in zip(ours.layers, theirs.layers, strict=True):
        torch.testing.assert_close(layer.project.weight.grad, conv.lin.weight.grad)
        torch.testing.assert_close(layer.bias.grad, conv.bias.grad)
        torch.testing.assert_close(layer.attend.score.query_weight.grad, conv.att_dst.grad[0, :, :, None])
        torch.testing.assert_close(layer.attend.score.key_weight.grad, conv.att_src.grad[0, :, :, None])


def test_renumbering_the_nodes_renumbers_the_output():
    model, edge_2E, x = small_gat(), graph_with_loops(), torch.randn(N, D, dtype=torch.float64)
    order = torch.randperm(N)
    new_number = torch.empty_like(order).scatter_(0, order, torch.arange(N))
    renumbered = model(x[order], Edges(new_number[edge_2E], N, N))
    torch.testing.assert_close(renumbered, model(x, Edges(edge_2E, N, N))[order])


def test_recorded_weights_are_one_per_edge_and_sum_to_one_per_node():
    model, neighbours, x = small_gat(), Edges(graph_with_loops(), N, N), torch.randn(N, D, dtype=torch.float64)
    plain = model(x, neighbours)
    with record(model) as maps:
        recorded = model(x, neighbours)
    assert torch.equal(plain, recorded)
    assert attention_layers(model) == ["layers.0.attend", "layers.1.attend"]
    for name, num_heads in (("layers.0.attend", H), ("layers.1.attend", HEADS_OUT)):
        weights_HE = maps[name][0]
        assert weights_HE.shape == (num_heads, neighbours.edge_2E.shape[1])
        total_HN = weights_HE.new_zeros(num_heads, N).index_add(1, neighbours.edge_2E[0], weights_HE)
        torch.testing.assert_close(total_HN, torch.ones_like(total_HN))


def test_recorded_weights_are_those_of_torch_geometric():
    model, neighbours, x = small_gat(depth=1), Edges(graph_with_loops(), N, N), torch.randn(N, D, dtype=torch.float64)
    with record(model) as maps:
        model(x, neighbours)
    _, (_, expected_EH) = (
        GeometricGAT(model).eval().layers[0](x, neighbours.edge_2E.flip(0), return_attention_weights=True)
    )
    torch.testing.assert_close(maps[0][0].T, expected_EH)


def test_a_node_without_edges_gets_the_bias():
    model, x = small_gat(depth=1), torch.randn(N, D, dtype=torch.float64)
    edge_2E = graph_with_loops()
    out = model(x, Edges(edge_2E[:, edge_2E[0] != 11], N, N))
    torch.testing.assert_close(out[11], model.layers[0].bias)


def test_sparse_features_give_the_same_output_and_gradient():
    model, neighbours = small_gat(), Edges(graph_with_loops(), N, N)
    x = torch.randn(N, D, dtype=torch.float64) * (torch.rand(N, D) < 0.2)
    direction, gradients = torch.randn(N, C, dtype=torch.float64), []
    for features in (x, x.to_sparse()):
        model.zero_grad()
        model(features, neighbours).backward(direction)
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(model(x.to_sparse(), neighbours), model(x, neighbours))
    torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_dropout_acts_in_training_only(layout):
    model, neighbours, x = small_gat(), Edges(graph_with_loops(), N, N), torch.randn(N, D, dtype=torch.float64)
    x = x.to_sparse() if layout == "sparse" else x
    assert torch.equal(model(x, neighbours), model(x, neighbours))
    model.train()
    assert not torch.equal(model(x, neighbours), model(x, neighbours))


def test_parameters_are_those_of_the_paper():
    # 8 heads of 1433 × 8 and a of 2 · 8, bias 64; then 64 × 7, a of 2 · 7, bias 7.
    assert sum(p.numel() for p in GAT(1433, 7).parameters()) == 1433 * 64 + 128 + 64 + 64 * 7 + 14 + 7


def test_depth_zero_is_refused():
    with pytest.raises(MiradaError, match="depth=0"):
        GAT(D, C, depth=0)


def test_patience_keeps_what_is_best_in_both_and_waits_for_either():
    patience = Patience(2)
    assert patience.should_keep(1.0, 0.5)
    assert not patience.should_keep(1.1, 0.6)  # better accuracy only: not kept, but not waited for
    assert patience.waited == 0
    assert patience.should_keep(0.9, 0.6)  # a tie counts
    assert not patience.should_keep(0.95, 0.5)
    assert not patience.is_over
    assert not patience.should_keep(0.95, 0.5)
    assert patience.is_over


def test_results_of_another_protocol_are_not_counted(tmp_path):
    path = tmp_path / "results.jsonl"
    assert results_of(Protocol(), path) == {}
    lines = [{"seed": 3, "protocol": Protocol().digest()}, {"seed": 5, "protocol": Protocol(dropout=0.5).digest()}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(results_of(Protocol(), path)) == [3]


def test_training_repeats_to_the_bit(real_data):
    graph, short = prepare(real_data("graph/cora")), Protocol(max_epochs=3)
    runs = [train(graph, 2, short) for _ in range(2)]
    assert runs[0]["val_loss"] == runs[1]["val_loss"] != train(graph, 3, short)["val_loss"]


@pytest.mark.long
def test_one_seed_on_cora(real_data):
    assert train(prepare(real_data("graph/cora")), 0, Protocol())["test_accuracy"] > 0.80
