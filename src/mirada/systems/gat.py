"""Graph attention network: every node looks at its neighbours (Veličković 2018).

    h′_i = ‖_h ELU( Σ_{j ∈ N_i} α^h_ij W^h h_j + b^h ),   α^h_ij = softmax_j LeakyReLU(a^hᵀ [W^h h_i ‖ W^h h_j])

The last layer averages its heads and has no ELU: its outputs are the logits of the classes.

Shape letters: N nodes, E edges, D dim, H heads, K head dim, C classes; the graph is a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attend, GraphAdditive, Neighbours
from mirada.core.heads import split
from mirada.errors import MiradaError
from mirada.systems.registry import Card, register


def concatenated(heads_HNK: Tensor) -> Tensor:
    return heads_HNK.transpose(0, 1).flatten(1)


def averaged(heads_HNK: Tensor) -> Tensor:
    return heads_HNK.mean(0)


def dropped(x_ND: Tensor, dropout: float, training: bool) -> Tensor:
    """Dropout that also serves bags of words kept sparse: a zero stays zero, so only what is there is drawn for."""
    if not x_ND.is_sparse:
        return F.dropout(x_ND, dropout, training)
    kept = F.dropout(x_ND.values(), dropout, training)
    return torch.sparse_coo_tensor(x_ND.indices(), kept, x_ND.shape, is_coalesced=True, check_invariants=False)


class GraphAttention(nn.Module):
    """join_h(Σ_{j ∈ N_i} α^h_ij W^h x_j) + b: query, key and value of a head are the same W^h x; there is no W^O."""

    def __init__(
        self, dim: int, head_dim: int, num_heads: int, join: Callable[[Tensor], Tensor], dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.join = join
        self.dropout = dropout
        self.project = nn.Linear(dim, num_heads * head_dim, bias=False)
        for weight_KD in self.project.weight.unflatten(0, (num_heads, head_dim)):
            nn.init.xavier_uniform_(weight_KD)
        self.attend = Attend(GraphAdditive(head_dim, num_heads), dropout=dropout)
        self.bias = nn.Parameter(torch.zeros_like(join(torch.empty(num_heads, 1, head_dim))[0]))

    def forward(self, x_ND: Tensor, neighbours: Neighbours) -> Tensor:
        h_1HNK = split(self.project(dropped(x_ND, self.dropout, self.training))[None], self.num_heads)
        return self.join(self.attend(h_1HNK, h_1HNK, h_1HNK, neighbours=neighbours)[0]) + self.bias


@register(
    Card(
        name="gat",
        title="Graph Attention Network",
        summary="Every node of a graph looks at its neighbours and weighs them by content.",
        paper="Veličković et al., Graph Attention Networks, 2018",
        inputs="graph",
        parts={
            "score": "graph-additive",
            "neighbours": "edges",
            "position": "none: the graph is all there is",
            "heads": "concatenated, averaged at the output",
        },
        sizes={
            "cora": {"hidden_dim": 8, "num_heads": 8, "depth": 2, "num_out_heads": 1, "dropout": 0.6},
            "pubmed": {"hidden_dim": 8, "num_heads": 8, "depth": 2, "num_out_heads": 8, "dropout": 0.6},
        },
        default_size="cora",
        when_to_use="Classes of nodes, when a node resembles those it is linked with: citations, friends, contacts.",
        tiny={"hidden_dim": 3, "num_heads": 2, "depth": 2},
    )
)
class GAT(nn.Module):
    """Logits of the classes for every node of a graph: (features_ND, neighbours) → (N, C).

    `hidden_dim` is the width of one head; the neighbours should include the node itself. Features that are mostly zero
    may come as a coalesced sparse tensor (`features_ND.to_sparse()`): the same result, twice as fast on Cora.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        hidden_dim: int = 8,
        num_heads: int = 8,
        depth: int = 2,
        num_out_heads: int = 1,
        dropout: float = 0.6,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise MiradaError(f"depth={depth}: a graph attention network has at least its output layer")
        dims = [in_channels] + [num_heads * hidden_dim] * (depth - 1)
        self.layers = nn.ModuleList(
            [GraphAttention(dim, hidden_dim, num_heads, concatenated, dropout) for dim in dims[:-1]]
            + [GraphAttention(dims[-1], num_classes, num_out_heads, averaged, dropout)]
        )

    def forward(self, features_ND: Tensor, neighbours: Neighbours) -> Tensor:
        x_ND = features_ND
        for layer in self.layers[:-1]:
            x_ND = F.elu(layer(x_ND, neighbours))
        return self.layers[-1](x_ND, neighbours)
