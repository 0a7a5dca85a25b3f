"""A trained model that answers about the nodes of a graph: the one it was trained on, or another with such features."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.graph import Graph
from mirada.data.graph_batches import OnGraph, whole_batch
from mirada.data.graph_features import FeatureScale
from mirada.data.graphs import open_graph
from mirada.errors import MiradaError
from mirada.verbs.images import NamedImage
from mirada.verbs.load import Progress, Trained


class TrainedGraph(Trained):
    """The best model of a run on a graph. Its sources are folders of graphs, or a Graph in memory."""

    def predict(self, images: object, *, batch_size: int = 64) -> list[dict]:
        """Answers in words, one per node of a graph, in the order of its nodes."""
        return self.task.answers(self.outputs(images))

    def outputs(self, images: object, *, batch_size: int = 64) -> Tensor:
        """(N, C) what the model gives for the nodes of a graph, before it is put into words."""
        return self.on(self.graph(images))

    def rows(self, images: object, *, batch_size: int = 64, progress: Progress | None = None) -> list[dict]:
        """One row per node: name, the answer, and `error`, which nodes do not have."""
        graph = self.graph(images)
        answers = self.task.answers(self.on(graph))
        return [{"name": graph.node_name(node), **answer, "error": None} for node, answer in enumerate(answers)]

    def batches(
        self, images: list[NamedImage], batch_size: int, progress: Progress | None = None
    ) -> Iterator[tuple[list[NamedImage], list[str], Tensor]]:
        raise MiradaError(f"{self.folder.path}: this model was trained on a graph; it has no answers about images.")

    @torch.inference_mode()
    def on(self, graph: Graph, nodes: np.ndarray | None = None) -> Tensor:
        """Outputs for these nodes (all, if None) of a graph that fits."""
        chosen = np.arange(graph.num_nodes) if nodes is None else nodes
        batch: Batch = whole_batch(graph, chosen)
        scale = FeatureScale.from_dict(self.data["normalisation"])
        model = OnGraph(self.model, graph, scale, self.device).eval()
        return model(batch.inputs.to(self.device)).float().cpu()

    def graph(self, source: object) -> Graph:
        """The graph of a source, with the features in the order that the model knows."""
        if isinstance(source, list | tuple):
            if len(source) != 1:
                raise MiradaError(f"{len(source)} graphs are given; this model answers about one at a time.")
            source = source[0]
        if isinstance(source, Graph):
            return self._fitted(source)
        if not isinstance(source, str | os.PathLike):
            raise MiradaError(f"{type(source).__name__} is not a graph; give the folder of one.")
        return self._fitted(open_graph(source))

    def _fitted(self, graph: Graph) -> Graph:
        num_features, known = self.data["in_channels"], self.data.get("feature_names")
        if known is not None and graph.feature_names is not None:
            missing = [name for name in known if name not in graph.feature_names]
            if missing:
                raise MiradaError(
                    f"{graph.source}: has no feature {missing[0]!r}, which the model was trained on; add the column."
                )
            order = [graph.feature_names.index(name) for name in known]
            return dataclasses.replace(graph, features_ND=graph.features_ND[:, order], feature_names=tuple(known))
        if graph.features_ND.shape[1] != num_features:
            raise MiradaError(
                f"{graph.source}: nodes have {graph.features_ND.shape[1]} features, but the model was trained on "
                f"{num_features}."
            )
        return graph
