"""Open whatever holds a graph: Planetoid files, or an edge list beside a table of nodes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mirada.data.discover import has_images
from mirada.data.edge_list import read_edge_list
from mirada.data.graph import UNKNOWN, Graph, row_normalised, with_self_loops
from mirada.data.planetoid import is_planetoid, read_planetoid
from mirada.errors import MiradaError

__all__ = [
    "SETTINGS_OF_IMAGES",
    "UNKNOWN",
    "Graph",
    "is_graph",
    "open_graph",
    "read_edge_list",
    "read_planetoid",
    "row_normalised",
    "with_self_loops",
]

TABLES = tuple(stem + ending for stem in ("edges", "nodes") for ending in (".csv", ".tsv"))

# How images are read, varied and drawn: on a graph these settings have no say.
SETTINGS_OF_IMAGES = {
    "data": (
        *("path_column", "label_column", "split_column", "group_column", "image_root", "label_pattern"),
        *("image_size", "fit", "on_broken", "workers", "memory_gb"),
    ),
    "train": ("batch_size", "accumulate", "balanced"),
    "augment": ("strength", "crop", "flip", "affine", "colour", "tone", "erase", "mixup", "cutmix", "mix"),
}


def open_graph(source: str | os.PathLike) -> Graph:
    """The graph of a folder; for one of its two tables, that of the folder which holds both."""
    path = Path(source)
    folder = path.parent if path.name in TABLES and path.is_file() else path
    if not is_graph(folder):
        found = "there is no such folder" if not path.exists() else "there is no graph here"
        raise MiradaError(f"{source}: {found}; expected edges.csv and nodes.csv, or the files ind.* of Planetoid.")
    graph = read_planetoid(folder) if is_planetoid(folder) else read_edge_list(folder)
    return replace(graph, source=os.fspath(source))


def is_graph(source: str | os.PathLike) -> bool:
    """Whether this is to be read as a graph; one of the two tables is enough, so that the other can be missed."""
    path = Path(source)
    if path.is_file():
        return path.name in TABLES and is_graph(path.parent)
    if not path.is_dir():
        return False
    found = {(path / name).stem for name in TABLES if (path / name).is_file()}
    return is_planetoid(path) or len(found) == 2 or (len(found) == 1 and not has_images(path))
