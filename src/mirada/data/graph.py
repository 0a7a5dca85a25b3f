"""A graph with features and labels on its nodes. Shape letters: N nodes, E edges, D features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.core import Edges

UNKNOWN = -1  # the label of a node that has none


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph: `edge_2E` holds each edge in both directions, row 0 the one who looks, row 1 who is seen."""

    name: str
    features_ND: Tensor  # float32
    edge_2E: Tensor  # int64
    labels_N: Tensor  # int64, UNKNOWN where there is no label
    train_index: Tensor  # int64, into the nodes
    val_index: Tensor
    test_index: Tensor
    class_names: tuple[str, ...] | None = None
    source: str = ""
    kind: str = "graph"  # 'planetoid' | 'edge-list'
    node_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    num_self_loops: int = 0  # edges that the files have and that were left out
    num_duplicates: int = 0
    notes: tuple[str, ...] = ()  # what was decided while reading, in plain sentences

    @property
    def num_nodes(self) -> int:
        return len(self.features_ND)

    @property
    def num_edges(self) -> int:
        """Pairs of linked nodes, whatever the direction; self loops do not count."""
        return int((self.edge_2E[0] < self.edge_2E[1]).sum())

    @property
    def num_classes(self) -> int:
        return int(self.labels_N.max()) + 1 if self.class_names is None else len(self.class_names)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; numbers where the files give no names."""
        return tuple(map(str, range(self.num_classes))) if self.class_names is None else self.class_names

    @property
    def labelled(self) -> np.ndarray:
        """Nodes with a known label."""
        return np.flatnonzero(self.labels_N.numpy() != UNKNOWN)

    def node_name(self, node: int) -> str:
        return str(node) if self.node_names is None else self.node_names[node]

    def neighbours(self) -> Edges:
        return Edges(self.edge_2E, self.num_nodes, self.num_nodes)

    def class_counts(self, nodes: np.ndarray) -> np.ndarray:
        """Nodes per class, among these labelled ones."""
        return np.bincount(self.labels_N.numpy()[nodes], minlength=self.num_classes)

    def checksum(self) -> str:
        """SHA-256 of nodes, features, edges and labels."""
        digest = hashlib.sha256(repr((self.classes, self.node_names, self.feature_names)).encode())
        for tensor in (self.features_ND, self.edge_2E, self.labels_N):
            digest.update(str(tuple(tensor.shape)).encode() + tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


def divided_by_sum(features_ND: Tensor) -> Tensor:
    """x_i ← x_i / Σ_d x_id, the usual form of bags of words; a row that sums to zero stays as it is."""
    total_N1 = features_ND.sum(1, keepdim=True)
    return features_ND / total_N1.masked_fill(total_N1 == 0, 1.0)


def row_normalised(graph: Graph) -> Graph:
    return replace(graph, features_ND=divided_by_sum(graph.features_ND))


def with_self_loops(graph: Graph) -> Graph:
    """N_i ← N_i ∪ {i}."""
    itself_N = torch.arange(graph.num_nodes)
    both_2E = torch.cat([graph.edge_2E, itself_N.expand(2, -1)], dim=1)
    return replace(graph, edge_2E=torch.unique(both_2E, dim=1))


class CleanEdges(NamedTuple):
    edge_2E: Tensor
    num_self_loops: int
    num_duplicates: int  # the same i, j again; j, i is the other direction of an edge and no duplicate


def undirected(pairs_2E: Tensor) -> CleanEdges:
    """Every edge in both directions, once, without self loops, in the order of (i, j)."""
    proper_2E = pairs_2E[:, pairs_2E[0] != pairs_2E[1]]
    num_self_loops = pairs_2E.shape[1] - proper_2E.shape[1]
    num_duplicates = proper_2E.shape[1] - torch.unique(proper_2E, dim=1).shape[1]
    both_2E = torch.unique(torch.cat([proper_2E, proper_2E.flip(0)], dim=1), dim=1)
    return CleanEdges(both_2E, num_self_loops, num_duplicates)
