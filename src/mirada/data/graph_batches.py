"""Nodes as batches, so that what trains on images trains on a graph: a batch is a list of nodes, and a model that is
bound to the graph answers for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mirada.data.batches import Batch
from mirada.data.graph import Graph, with_self_loops
from mirada.data.graph_features import FeatureScale


class OnGraph(nn.Module):
    """nodes ↦ model(features, neighbours)[nodes]: every node looks at its neighbours and itself.

    Its state is that of the model alone, so that a checkpoint holds nothing of the graph.
    """

    def __init__(self, model: nn.Module, graph: Graph, scale: FeatureScale, device: torch.device) -> None:
        super().__init__()
        self.model = model
        features_ND = scale.apply(graph.features_ND)
        # Twice as fast where most is zero, but not every device knows sparse tensors.
        is_sparse = scale.kind == "rows" and device.type == "cpu"
        self.register_buffer("features_ND", features_ND.to_sparse() if is_sparse else features_ND, persistent=False)
        self.neighbours = with_self_loops(graph).neighbours()
        self.to(device)

    def forward(self, nodes: Tensor) -> Tensor:
        return self.model(self.features_ND, self.neighbours).index_select(0, nodes)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.load_state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> OnGraph:
        super()._apply(fn, recurse)
        self.neighbours = self.neighbours.apply(fn)  # type: ignore[assignment]
        return self


class NodeBatches:
    """All training nodes at once: one batch is an epoch."""

    def __init__(self, graph: Graph, nodes: np.ndarray) -> None:
        self.whole = whole_batch(graph, nodes)
        self.epoch, self.step = 0, 0

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Batch]:
        yield self.whole
        self.epoch += 1

    def batch(self, epoch: int, step: int) -> Batch:
        return self.whole


def whole_batch(graph: Graph, nodes: np.ndarray) -> Batch:
    """These nodes as one batch."""
    rows = torch.from_numpy(np.asarray(nodes, dtype=np.int64))
    return Batch(inputs=rows, targets=graph.labels_N[rows], rows=rows)
