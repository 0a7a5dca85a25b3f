"""What a model of a graph is asked when it is measured: its held-out nodes, or the labelled nodes of another graph."""

from __future__ import annotations

import dataclasses

import torch

from mirada.data.graph import UNKNOWN, Graph
from mirada.data.graph_batches import OnGraph, whole_batch
from mirada.data.graph_features import FeatureScale
from mirada.errors import MiradaError
from mirada.verbs.load import Progress, Trained
from mirada.verbs.load_graph import TrainedGraph
from mirada.verbs.prepare_graph import prepare_graph
from mirada.verbs.questions import Questions, positions, require_other_data, require_own_data


def questions_about_nodes(trained: Trained, source: str | None, given: dict, progress: Progress | None) -> Questions:
    assert isinstance(trained, TrainedGraph)
    if given:
        raise MiradaError("a graph is read without settings; leave them out.")
    if source is None:
        require_own_data(trained)
        prepared = prepare_graph(trained.config.data, saved=trained.data)
        graph, side = prepared.graph, prepared.held_out
        nodes, title = prepared.split.rows(side), f"{trained.data['source']} ({side} nodes)"
    else:
        graph, side, title = trained.graph(source), "", source
        require_other_data(graph.checksum(), trained, source)
        graph = _numbered(graph, trained)
        nodes = graph.labelled
        if not len(nodes):
            raise MiradaError(f"{source}: no node has a label, so nothing can be measured; use `mirada predict`.")
    model = OnGraph(trained.model, graph, FeatureScale.from_dict(trained.data["normalisation"]), trained.device)
    return Questions(model, [whole_batch(graph, nodes)], graph.node_name, title, side, list)


def _numbered(graph: Graph, trained: Trained) -> Graph:
    """The graph with labels numbered as the model's classes are."""
    known = trained.data["class_names"]
    number = torch.tensor([*positions(graph.classes, known, graph.source, "classes"), UNKNOWN])  # −1 stays −1
    return dataclasses.replace(graph, labels_N=number[graph.labels_N], class_names=tuple(known))
