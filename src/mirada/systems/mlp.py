"""Each node on its own: what its features say without its neighbours.

    h = ELU(W_1 x + b_1),   y = W_2 h + b_2,   dropout before each W

Shape letters: N nodes, D features, C classes.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Neighbours
from mirada.errors import MiradaError
from mirada.systems.gat import dropped
from mirada.systems.registry import Card, register


@register(
    Card(
        name="mlp",
        title="Multilayer perceptron on nodes",
        summary="Looks at the features of each node and at no edge: the baseline of graphs.",
        paper="Rumelhart, Hinton, Williams, Learning representations by back-propagating errors, 1986",
        inputs="graph",
        parts={},
        sizes={"small": {"hidden_dim": 64, "depth": 2, "dropout": 0.6}},
        default_size="small",
        when_to_use="To see whether the edges are worth anything: a graph model should be ahead of this one.",
        tiny={"hidden_dim": 5, "depth": 2},
    )
)
class NodeMLP(nn.Module):
    """Logits of the classes for every node: (features_ND, neighbours) → (N, C); the neighbours are not looked at."""

    def __init__(
        self, in_channels: int, num_classes: int, hidden_dim: int = 64, depth: int = 2, dropout: float = 0.6
    ) -> None:
        super().__init__()
        if depth < 1:
            raise MiradaError(f"depth={depth}: a multilayer perceptron has at least its output layer")
        self.dropout = dropout
        dims = [in_channels] + [hidden_dim] * (depth - 1) + [num_classes]
        layers = [nn.Linear(*ends) for ends in pairwise(dims)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, features_ND: Tensor, neighbours: Neighbours) -> Tensor:
        x = features_ND
        for layer in self.layers[:-1]:
            x = F.elu(layer(dropped(x, self.dropout, self.training)))
        return self.layers[-1](dropped(x, self.dropout, self.training))
