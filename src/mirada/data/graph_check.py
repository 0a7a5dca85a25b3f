"""Look at a graph before training: counts, balance, split, isolated nodes, what the edges connect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from mirada.data.check_text import class_lines, sentences
from mirada.data.graph import UNKNOWN, Graph
from mirada.data.suspicions import class_count_warnings
from mirada.data.table import SPLIT_NAMES
from mirada.errors import MiradaError

MANY_ISOLATED = 0.1


@dataclass(frozen=True)
class GraphInspection:
    """What a look at the graph found."""

    source: str
    kind: str
    task: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_unlabelled: int
    num_isolated: int
    num_without_features: int
    num_self_loops: int
    num_duplicates: int
    mean_degree: float
    max_degree: int
    same_class: float | None  # share of the edges between labelled nodes that join nodes of one class
    class_counts: dict[str, dict[str, int]]  # class -> split ('all' when none is given) -> nodes
    split_counts: dict[str, int]
    problems: tuple[str, ...]  # these stop training
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict:
        """Plain dictionaries and lists, for JSON."""
        return asdict(self)


def inspect_graph(graph: Graph) -> GraphInspection:
    sides = _sides(graph)
    degree_N = torch.bincount(graph.edge_2E[0], minlength=graph.num_nodes)
    counts = {side: graph.class_counts(nodes) for side, nodes in sides.items()}
    num_isolated = int((degree_N == 0).sum())
    return GraphInspection(
        source=graph.source,
        kind=graph.kind,
        task="single-label",
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        num_features=graph.features_ND.shape[1],
        num_unlabelled=graph.num_nodes - len(graph.labelled),
        num_isolated=num_isolated,
        num_without_features=int((graph.features_ND == 0).all(1).sum()),
        num_self_loops=graph.num_self_loops,
        num_duplicates=graph.num_duplicates,
        mean_degree=round(float(degree_N.double().mean()), 3),
        max_degree=int(degree_N.max()),
        same_class=same_class(graph),
        class_counts={name: {side: int(counts[side][i]) for side in sides} for i, name in enumerate(graph.classes)},
        split_counts={side: len(nodes) for side, nodes in sides.items()},
        problems=tuple(problems_of_graph(graph)),
        warnings=tuple(_warnings(graph, sides, num_isolated)),
        notes=graph.notes,
    )


def require_trainable_graph(graph: Graph) -> None:
    """Raise with the first problem, if there is one."""
    for problem in problems_of_graph(graph):
        raise MiradaError(f"{graph.source}: {problem}")


def problems_of_graph(graph: Graph) -> list[str]:
    """Reasons why nothing can be learnt from this graph."""
    if graph.num_edges == 0:
        return ["the graph has no edges between different nodes; without them there are no neighbours to look at."]
    if not len(graph.labelled):
        return ["no node has a label; fill in the column 'label' of the nodes for those that are known."]
    sides = _sides(graph)
    if "train" in sides and not len(sides["train"]):
        return ["the given split has no training nodes."]
    counts = graph.class_counts(graph.labelled)
    if (counts > 0).sum() < 2:
        return [f"there is only one class ({graph.classes[int(counts.argmax())]!r}); telling apart needs at least two."]
    if counts.max() == 1:
        return ["every class has a single node, so nothing is left to test with; label more nodes."]
    return []


def same_class(graph: Graph) -> float | None:
    """The share of edges that join nodes of the same class, among those whose two nodes are labelled."""
    label_2E = graph.labels_N[graph.edge_2E]
    known_2E = label_2E[:, (label_2E != UNKNOWN).all(0)]
    return float((known_2E[0] == known_2E[1]).double().mean()) if known_2E.shape[1] else None


def render_graph(found: GraphInspection) -> str:
    """Counts, then problems and warnings, as text for a terminal."""
    lines = [f"{found.source}: a graph ({found.kind}) of {found.num_nodes:,} nodes and {found.num_edges:,} edges"]
    if list(found.split_counts) != ["all"]:
        lines.append("split     " + ", ".join(f"{name} {count}" for name, count in found.split_counts.items()))
    lines += [
        f"features  {found.num_features:,}, nodes without any: {found.num_without_features:,}",
        f"degree    {found.mean_degree:.3g} on average, {found.max_degree:,} at most",
        f"isolated  {found.num_isolated:,} nodes",
        f"left out  self loops: {found.num_self_loops:,}, edges listed again: {found.num_duplicates:,}",
        f"labels    {found.num_nodes - found.num_unlabelled:,} nodes, {found.num_unlabelled:,} without",
    ]
    if found.same_class is not None:
        lines.append(f"same      {100 * found.same_class:.0f} % of the edges join nodes of one class")
    if found.class_counts:
        lines += ["", f"{len(found.class_counts)} classes", *class_lines(found.class_counts)]
    lines += sentences(found.problems, found.warnings, found.notes)
    return "\n".join(lines if found.problems else [*lines, "", "ready to train"])


def _sides(graph: Graph) -> dict[str, np.ndarray]:
    given = {
        name: index.numpy()
        for name, index in zip(SPLIT_NAMES, (graph.train_index, graph.val_index, graph.test_index), strict=True)
    }
    return given if any(map(len, given.values())) else {"all": graph.labelled}


def _warnings(graph: Graph, sides: dict[str, np.ndarray], num_isolated: int) -> list[str]:
    found = []
    if num_isolated > MANY_ISOLATED * graph.num_nodes:
        found.append(f"{num_isolated:,} of {graph.num_nodes:,} nodes have no neighbours: the graph cannot help them.")
    labelled = np.concatenate(list(sides.values()))
    found += class_count_warnings(graph.classes, graph.class_counts(labelled), "nodes")
    if "train" in sides:
        unseen: Sequence[str] = [
            name for name, num in zip(graph.classes, graph.class_counts(sides["train"]), strict=True) if num == 0
        ]
        found += [f"classes without training nodes: {', '.join(unseen)}."] if unseen else []
    return found
