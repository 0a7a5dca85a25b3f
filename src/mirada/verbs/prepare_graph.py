"""From the data section of a configuration to a graph, its split, the scale of its features and its task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from mirada.config.schema import Config, DataConfig
from mirada.data.batches import Batch
from mirada.data.graph import Graph
from mirada.data.graph_batches import NodeBatches, OnGraph, whole_batch
from mirada.data.graph_check import inspect_graph, require_trainable_graph
from mirada.data.graph_features import FeatureScale, scale_for
from mirada.data.graph_split import split_nodes
from mirada.data.graphs import SETTINGS_OF_IMAGES, open_graph
from mirada.data.splits import Split
from mirada.data.table import SPLIT_NAMES
from mirada.errors import MiradaError
from mirada.tasks.image import Task
from mirada.tasks.single_label import SingleLabel, inverse_frequency
from mirada.verbs.judging import AnsweredByRow, ReadyAtOnce


@dataclass(frozen=True)
class PreparedGraph(ReadyAtOnce, AnsweredByRow):
    """A graph that is ready to train on; the same methods as images have (see Prepared)."""

    graph: Graph
    split: Split
    scale: FeatureScale

    inputs = "graph"
    task_name = "single-label"

    @property
    def source(self) -> str:
        return self.graph.source

    @property
    def held_out(self) -> str:
        """The side on which the final result is measured: test, or val where the data brings no test nodes."""
        return "test" if len(self.split.test) else "val"

    def name(self, row: int) -> str:
        return self.graph.node_name(row)

    def preset(self) -> tuple[str, str]:
        return "graph", f"a graph of {self.graph.num_nodes:,} nodes and {self.graph.num_edges:,} edges"

    def settings(self) -> dict:
        return {}

    def arguments(self) -> dict:
        """What the data decides of a system."""
        return {"in_channels": self.graph.features_ND.shape[1], "num_classes": self.graph.num_classes}

    def attached(self, model: nn.Module, device: torch.device) -> nn.Module:
        return OnGraph(model, self.graph, self.scale, device)

    def training(self, config: Config) -> NodeBatches:
        return NodeBatches(self.graph, self.split.train)

    def evaluation(self, side: str) -> Iterator[Batch]:
        yield whole_batch(self.graph, self.split.rows(side))

    def task(self, config: Config) -> Task:
        counts = self.graph.class_counts(self.split.train)
        weights = inverse_frequency(counts) if config.train.class_weights else None
        return SingleLabel(self.graph.classes, label_smoothing=config.train.label_smoothing, class_weights=weights)

    def require_suitable(self, config: Config) -> None:
        """Refuse settings that say how images are treated, and tasks that nodes do not have."""
        for section, names in SETTINGS_OF_IMAGES.items():
            given = getattr(config, section)
            for name in names:
                if getattr(given, name) != type(given).model_fields[name].default:
                    raise MiradaError(
                        f"setting '{section}.{name}' is for images, but {self.source} holds a graph; leave it out."
                    )
        if config.data.task not in (None, self.task_name):
            raise MiradaError(f"{self.source}: nodes have one class each, so the task cannot be {config.data.task}.")

    def describe(self) -> dict:
        """data.json"""
        graph, split = self.graph, self.split
        found = inspect_graph(graph)
        return {
            "source": graph.source,
            "inputs": self.inputs,
            "kind": graph.kind,
            "task": self.task_name,
            "class_names": list(graph.classes),
            "target_names": [],
            "in_channels": graph.features_ND.shape[1],
            "feature_names": None if graph.feature_names is None else list(graph.feature_names),
            "normalisation": self.scale.to_dict(),
            "held_out": self.held_out,
            "num_nodes": {name: len(split.rows(name)) for name in SPLIT_NAMES},
            "graph": {
                "nodes": found.num_nodes,
                "edges": found.num_edges,
                "isolated": found.num_isolated,
                "self_loops": found.num_self_loops,
                "duplicates": found.num_duplicates,
                "unlabelled": found.num_unlabelled,
                "mean_degree": found.mean_degree,
                "same_class": found.same_class,
            },
            "class_counts": {name: graph.class_counts(split.rows(name)).tolist() for name in SPLIT_NAMES},
            "checksum": graph.checksum(),
            "notes": [*graph.notes, self.scale.note, *split.notes],
            "broken": [],
            "split": split.to_dict(),
        }


def prepare_graph(data: DataConfig, *, saved: dict | None = None) -> PreparedGraph:
    """Read the graph and divide its nodes; with `saved` (the data.json of a run) the division is the saved one."""
    graph = open_graph(data.source)
    require_trainable_graph(graph)
    if saved is None:
        split = split_nodes(graph, seed=data.split_seed, val=data.val, test=data.test)
        return PreparedGraph(graph, split, scale_for(graph.features_ND))
    if graph.checksum() != saved["checksum"]:
        raise MiradaError(f"{data.source}: the data changed since this run started; restore it or train a new run.")
    return PreparedGraph(graph, Split.from_dict(saved["split"]), FeatureScale.from_dict(saved["normalisation"]))
