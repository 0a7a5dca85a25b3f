"""Small graphs as folders, for tests of whatever reads them."""

from pathlib import Path

import numpy as np

CLASSES = ("blue", "green", "red")


def make_graph(folder: Path, num_nodes: int = 61, seed: int = 0, columns: tuple[str, ...] = ("a", "b", "c")) -> Path:
    """edges.csv and nodes.csv: nodes of a class are linked, features say little, every seventh label is unknown."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, len(CLASSES), num_nodes)
    nodes = [",".join(("id", "label", *columns))]
    for node, label in enumerate(labels):
        values = generator.normal(0.5 * label, 1, len(columns))
        nodes.append(",".join([f"n{node}", CLASSES[label] if node % 7 else "", *(f"{value:.4f}" for value in values)]))
    near = labels[:, None] == labels
    linked = np.triu(generator.random((num_nodes, num_nodes)) < np.where(near, 0.2, 0.01), 1)
    edges = ["source,target", *(f"n{i},n{j}" for i, j in np.argwhere(linked))]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n", "utf-8")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n", "utf-8")
    return folder
