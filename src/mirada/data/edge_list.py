"""A graph as two tables: the edges, and the nodes with their labels and features.

Shape letters: N nodes, E edges, D features.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from mirada.data.graph import UNKNOWN, CleanEdges, Graph, undirected
from mirada.data.labels import clean_name, sort_names
from mirada.data.table import SPLIT_NAMES, canonical_split
from mirada.errors import MiradaError

EDGE_COLUMNS = ("source", "target")
NODE_COLUMNS = ("id", "label", "split")  # every other one is a feature


def read_edge_list(source: str | Path, nodes: str | Path | None = None) -> Graph:
    """A folder with edges.csv and nodes.csv (or .tsv), or the paths of the two files.

    edges: the columns source, target; without that header the first two columns. nodes: the columns id, maybe label,
    maybe split (train, val, test), and every other column is a feature. An empty label or split is none; without a
    split column no node is in any split.
    """
    source = Path(source)
    edges_path = _table_in(source, "edges") if nodes is None else source
    nodes_path = _table_in(source, "nodes") if nodes is None else Path(nodes)
    columns = _columns(nodes_path)
    ids = columns["id"]
    labels_N, class_names = _labels(columns.get("label", [""] * len(ids)))
    split = _splits(columns["split"], nodes_path) if "split" in columns else [None] * len(ids)
    index = [
        torch.tensor([n for n, own in enumerate(split) if own == wanted], dtype=torch.int64) for wanted in SPLIT_NAMES
    ]
    for name, nodes_of_split in zip(SPLIT_NAMES, index, strict=True):
        if (labels_N[nodes_of_split] == UNKNOWN).any():
            raise MiradaError(f"{nodes_path}: a node of the {name} split has no label: fill it in or empty its split")
    features = {name: cells for name, cells in columns.items() if name not in NODE_COLUMNS}
    features_ND = _features(features, nodes_path)
    edges, ignored = _edges(_read_rows(edges_path), _numbering(ids, nodes_path), edges_path, nodes_path)
    notes = [f"columns of {edges_path.name} that are not used: {', '.join(ignored)}."] if ignored else []
    return Graph(
        name=nodes_path.resolve().parent.name,
        features_ND=features_ND,
        edge_2E=edges.edge_2E,
        labels_N=labels_N,
        train_index=index[0],
        val_index=index[1],
        test_index=index[2],
        class_names=class_names,
        source=str(source),
        kind="edge-list",
        node_names=tuple(ids),
        feature_names=tuple(features),
        num_self_loops=edges.num_self_loops,
        num_duplicates=edges.num_duplicates,
        notes=tuple(notes),
    )


def _columns(path: Path) -> dict[str, Sequence[str]]:
    """The table of nodes by column."""
    header, *rows = _read_rows(path)
    header = [cell.lower() if cell.lower() in NODE_COLUMNS else cell for cell in header]
    if header.count("id") != 1:
        raise MiradaError(f"{path} must have one column 'id': its columns are {', '.join(header)}")
    if not rows or len(set(header)) < len(header):
        raise MiradaError(f"{path} must have a header of different names and at least one row")
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _table_in(folder: Path, stem: str) -> Path:
    for extension in (".csv", ".tsv"):
        if (folder / (stem + extension)).is_file():
            return folder / (stem + extension)
    raise MiradaError(f"{folder} has no {stem}.csv or {stem}.tsv: a graph is a folder with both edges and nodes")


def _read_rows(path: Path) -> list[list[str]]:
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise MiradaError(f"{path} does not exist: put the file there or correct the path") from None
    except OSError as error:
        raise MiradaError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise MiradaError(f"{path} is not a text table in UTF-8: save it as CSV in that encoding") from None
    first_line = text.lstrip().split("\n", 1)[0]
    delimiter = max("\t,;", key=first_line.count)  # a tie is for the tab, as in a file of one column
    table = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter)]
    table = [row for row in table if any(row)]
    if not table:
        raise MiradaError(f"{path} is empty")
    for number, row in enumerate(table, start=1):
        if len(row) != len(table[0]):
            raise MiradaError(f"{path}: row {number} has {len(row)} cells where the first row has {len(table[0])}")
    return table


def _numbering(ids: Sequence[str], path: Path) -> dict[str, int]:
    number = {name: n for n, name in enumerate(ids)}
    if len(number) < len(ids) or "" in number:
        twice = next((name for n, name in enumerate(ids) if number[name] != n), "")
        raise MiradaError(f"{path}: the id {twice!r} is empty or used twice: every node needs its own")
    return number


def _labels(cells: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    names = [clean_name(cell) for cell in cells]
    class_names = sort_names(set(names) - {""})
    number = {"": UNKNOWN, **{name: n for n, name in enumerate(class_names)}}
    return torch.tensor([number[name] for name in names]), class_names


def _splits(cells: Sequence[str], path: Path) -> list[str | None]:
    wrong = next((cell for cell in cells if cell and canonical_split(cell) is None), None)
    if wrong is not None:
        raise MiradaError(f"{path}: the split {wrong!r} is none of train, val, test (or empty)")
    return [canonical_split(cell) if cell else None for cell in cells]


def _features(columns: dict[str, Sequence[str]], path: Path) -> Tensor:
    if not columns:
        raise MiradaError(
            f"{path} has no feature column: add at least one column of numbers beside id, label and split"
        )
    return torch.tensor(
        [[_number(cell, name, path) for cell in cells] for name, cells in columns.items()]
    ).T.contiguous()


def _number(cell: str, column: str, path: Path) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise MiradaError(f"{path}: {cell!r} in the feature column {column!r} is not a finite number")
    return number


def _edges(
    table: list[list[str]], number: dict[str, int], path: Path, nodes_path: Path
) -> tuple[CleanEdges, list[str]]:
    """The edges, and the names of the columns that say nothing to us."""
    header = [cell.lower() for cell in table[0]]
    if set(EDGE_COLUMNS) <= set(header):
        source, target, rows = *map(header.index, EDGE_COLUMNS), table[1:]
        ignored = [cell for cell in table[0] if cell.lower() not in EDGE_COLUMNS]
    elif len(header) >= 2 and table[0][0] in number and table[0][1] in number:  # no header: the first row is an edge
        source, target, rows = 0, 1, table
        ignored = [f"number {n}" for n in range(3, len(header) + 1)]
    else:
        raise MiradaError(f"{path} must have the columns source and target: its first row is {', '.join(table[0])}")
    for row in rows:
        for node in (row[source], row[target]):
            if node not in number:
                raise MiradaError(f"{path} has an edge to the node {node!r}, which is not an id of {nodes_path.name}")
    pairs = [(number[row[source]], number[row[target]]) for row in rows]
    return undirected(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T), ignored
