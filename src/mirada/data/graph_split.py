"""Divide the labelled nodes of a graph into train, val and test, by the rules for images (splits.py).

All nodes and edges are seen while training; what is held out are the labels of val and test.
"""

from __future__ import annotations

import numpy as np

from mirada.data.graph import Graph
from mirada.data.splits import TEST, TRAIN, VAL, Split, assign, require_shares
from mirada.errors import MiradaError


def split_nodes(graph: Graph, *, seed: int = 0, val: float = 0.15, test: float = 0.15) -> Split:
    """The split that comes with the graph, a missing val taken out of train; or a stratified one, if there is none."""
    require_shares(val, test)
    generator = np.random.default_rng(seed)
    given = [index.numpy() for index in (graph.train_index, graph.val_index, graph.test_index)]
    if not any(map(len, given)):
        nodes = graph.labelled
        sides = _assigned(graph, nodes, (1 - val - test, val, test), generator)
        if not (sides > TRAIN).any():
            raise MiradaError(f"{graph.source}: {len(nodes)} labelled nodes are too few to hold some out; label more.")
        train, held_val, held_test = (nodes[sides == side] for side in (TRAIN, VAL, TEST))
        untested = [name for name, num in zip(graph.classes, graph.class_counts(held_test), strict=True) if num == 0]
        notes = [f"classes without a test node (too few labels): {', '.join(untested)}."] if untested else []
        return Split(train, held_val, held_test, "stratified", seed, tuple(notes))
    train, held_val, held_test = given
    notes = []
    if not len(train):
        raise MiradaError(f"{graph.source}: the given split has no training nodes.")
    if not len(held_val):
        sides = _assigned(graph, train, (1 - val, val, 0.0), generator)
        train, held_val = train[sides == TRAIN], train[sides == VAL]
        notes.append(f"the data gives no validation nodes: {len(held_val)} were taken out of train.")
    if not len(held_val):
        raise MiradaError(f"{graph.source}: {len(train)} training nodes are too few to hold some out; label more.")
    if not len(held_test):
        notes.append("the data gives no test nodes: results on val are optimistic, because val also chooses the epoch.")
    return Split(train, held_val, held_test, "given", seed, tuple(notes))


def _assigned(
    graph: Graph, nodes: np.ndarray, shares: tuple[float, float, float], generator: np.random.Generator
) -> np.ndarray:
    return assign(graph.labels_N.numpy()[nodes], np.arange(len(nodes)), shares, generator)
