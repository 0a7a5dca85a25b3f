"""Graphs with features and labels on their nodes: Planetoid files, or an edge list beside a table of nodes.

Shape letters: N nodes, E edges, D features.
"""

from __future__ import annotations

import csv
import math
import pickle
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mirada.core import Edges
from mirada.data.labels import clean_name, sort_names
from mirada.data.table import SPLIT_NAMES, canonical_split
from mirada.errors import MiradaError

UNKNOWN = -1  # the label of a node that has none

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph")
NUM_PLANETOID_VAL = 500


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

    @property
    def num_nodes(self) -> int:
        return len(self.features_ND)

    @property
    def num_classes(self) -> int:
        return int(self.labels_N.max()) + 1 if self.class_names is None else len(self.class_names)

    def neighbours(self) -> Edges:
        return Edges(self.edge_2E, self.num_nodes, self.num_nodes)


def row_normalised(graph: Graph) -> Graph:
    """x_i ← x_i / Σ_d x_id, the usual form of bags of words; a row that sums to zero stays as it is."""
    total_N1 = graph.features_ND.sum(1, keepdim=True)
    return replace(graph, features_ND=graph.features_ND / total_N1.masked_fill(total_N1 == 0, 1.0))


def with_self_loops(graph: Graph) -> Graph:
    """N_i ← N_i ∪ {i}."""
    itself_N = torch.arange(graph.num_nodes)
    both_2E = torch.cat([graph.edge_2E, itself_N.expand(2, -1)], dim=1)
    return replace(graph, edge_2E=torch.unique(both_2E, dim=1))


def undirected(edge_2E: Tensor) -> Tensor:
    """Every edge in both directions, once, without self loops, in the order of (i, j)."""
    edge_2E = edge_2E[:, edge_2E[0] != edge_2E[1]]
    return torch.unique(torch.cat([edge_2E, edge_2E.flip(0)], dim=1), dim=1)


def read_planetoid(folder: str | Path) -> Graph:
    """The files ind.<name>.{x,tx,allx,y,ty,ally,graph,test.index} of one Planetoid data set, with its public split.

    The split: the nodes of x train (20 per class), the next 500 validate, those of test.index test. Ids that are
    missing from the range of test.index (Citeseer has some) become nodes without features, label or split.
    """
    folder = Path(folder)
    name = _planetoid_name(folder)
    part = {key: _read_pickled(folder / f"ind.{name}.{key}") for key in PLANETOID_PARTS}
    matrices = {key: _matrix(part[key], folder / f"ind.{name}.{key}") for key in PLANETOID_PARTS[:-1]}
    test = _planetoid_test_index(folder / f"ind.{name}.test.index")
    num_train, num_all = len(matrices["y"]), len(matrices["ally"])
    num_nodes = int(test.max()) + 1
    _check_planetoid_shapes({key: matrix.shape for key, matrix in matrices.items()}, test, folder)
    features = np.zeros((num_nodes, matrices["allx"].shape[1]), np.float32)
    features[:num_all], features[test] = matrices["allx"], matrices["tx"]
    labels = np.full(num_nodes, UNKNOWN, np.int64)
    labels[:num_all], labels[test] = _from_one_hot(matrices["ally"]), _from_one_hot(matrices["ty"])
    return Graph(
        name=name,
        features_ND=torch.from_numpy(features),
        edge_2E=_planetoid_edges(part["graph"], num_nodes, folder / f"ind.{name}.graph"),
        labels_N=torch.from_numpy(labels),
        train_index=torch.arange(num_train),
        val_index=torch.arange(num_train, min(num_train + NUM_PLANETOID_VAL, num_all)),
        test_index=torch.from_numpy(np.sort(test)),
    )


class _CsrState:
    """Receives the attributes of a pickled csr_matrix, whose indices must not be used before they are checked."""

    def matrix(self) -> sparse.csr_matrix:
        state = vars(self)
        shape = state["_shape"] if "_shape" in state else state["shape"]
        matrix = sparse.csr_matrix((state["data"], state["indices"], state["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        return matrix


def _dtype(code: str, align: int = 0, copy: int = 0) -> np.dtype:
    # Old pickles pass 0 and 1 for the flags, which numpy now warns of.
    return np.dtype(code, align=bool(align), copy=bool(copy))


# A pickle can name any function to call: only these few constructors are let through.
IN_PICKLES: dict[tuple[str, str], Any] = {
    # numpy's own reconstructor, asked of an array because its module moved between versions.
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("scipy.sparse.csr", "csr_matrix"): _CsrState,
    ("scipy.sparse._csr", "csr_matrix"): _CsrState,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in IN_PICKLES:
            raise MiradaError(
                f"the pickle asks for {module}.{name}, which is not needed to hold arrays and may run any code: "
                "it was not loaded"
            )
        return IN_PICKLES[module, name]


def _read_pickled(path: Path) -> Any:
    """What a pickle of a dense array, a CSR matrix or a dictionary of lists holds (of Python 2 too)."""
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="latin1").load()
        return content.matrix() if isinstance(content, _CsrState) else content
    except MiradaError as error:
        raise MiradaError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise MiradaError(f"{path} does not exist: put the file there or correct the path") from None
    except OSError as error:
        raise MiradaError(f"{path} cannot be read ({error.strerror})") from None
    except Exception as error:  # a damaged pickle may raise anything
        raise MiradaError(f"{path} is not a readable pickle of arrays ({error!r})") from None


def is_planetoid(folder: Path) -> bool:
    return any(folder.glob("ind.*.graph"))


def _planetoid_name(folder: Path) -> str:
    graphs = sorted(folder.glob("ind.*.graph"))
    if len(graphs) != 1:
        found = ", ".join(path.name for path in graphs) or "none"
        raise MiradaError(f"{folder} must hold one file ind.<name>.graph of a Planetoid data set, found {found}")
    return graphs[0].name.removeprefix("ind.").removesuffix(".graph")


def _planetoid_test_index(path: Path) -> np.ndarray:
    try:
        index = np.array([int(word) for word in path.read_text("ascii").split()], np.int64)
    except FileNotFoundError:
        raise MiradaError(f"{path} does not exist: put the file there or correct the path") from None
    except (ValueError, OverflowError):
        raise MiradaError(f"{path} must hold one node number per line") from None
    if not len(index) or len(np.unique(index)) != len(index) or index.min() < 0:
        raise MiradaError(f"{path} must hold at least one node number, each once")
    return index


def _check_planetoid_shapes(shape: dict[str, tuple[int, ...]], test: np.ndarray, folder: Path) -> None:
    num_all, num_test = shape["ally"][0], len(test)
    rows_agree = shape["allx"][0] == num_all == test.min() and shape["tx"][0] == shape["ty"][0] == num_test
    columns_agree = shape["allx"][1] == shape["tx"][1] and shape["ally"][1] == shape["ty"][1] > 0
    # A few missing ids are known; more missing than present is a damaged file, and would ask for any amount of memory.
    if not (rows_agree and columns_agree and shape["y"][0] <= num_all and test.max() < num_all + 2 * num_test):
        raise MiradaError(
            f"{folder}: the Planetoid files do not belong together: their numbers of nodes or columns differ"
        )


def _from_one_hot(one_hot: np.ndarray) -> np.ndarray:
    return np.where(one_hot.any(1), one_hot.argmax(1), UNKNOWN)


def _matrix(content: object, path: Path) -> np.ndarray:
    dense = content.toarray() if sparse.issparse(content) else content  # type: ignore[attr-defined]
    if not isinstance(dense, np.ndarray) or dense.ndim != 2 or dense.dtype.kind not in "fiub":
        raise MiradaError(f"{path} must hold a matrix of numbers, found {type(content).__name__}")
    return dense


def _planetoid_edges(neighbours: object, num_nodes: int, path: Path) -> Tensor:
    if not isinstance(neighbours, dict) or not all(isinstance(seen, list) for seen in neighbours.values()):
        raise MiradaError(f"{path} must hold a dictionary from each node to a list of its neighbours")
    pairs = [(i, j) for i, seen in neighbours.items() for j in seen]
    if not all(isinstance(node, int) and 0 <= node < num_nodes for pair in pairs for node in pair):
        raise MiradaError(f"{path} names a node that is not one of 0 … {num_nodes - 1}")
    return undirected(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)


def read_edge_list(source: str | Path, nodes: str | Path | None = None) -> Graph:
    """A folder with edges.csv and nodes.csv (or .tsv), or the paths of the two files.

    edges: the columns source, target; without that header the first two columns. nodes: the columns id, label, maybe
    split (train, val, test), and every other column is a feature. An empty label or split is none; without a split
    column no node is in any split.
    """
    source = Path(source)
    edges_path = _table_in(source, "edges") if nodes is None else source
    nodes_path = _table_in(source, "nodes") if nodes is None else Path(nodes)
    header, *rows = _read_rows(nodes_path)
    header = [cell.lower() if cell.lower() in ("id", "label", "split") else cell for cell in header]
    for column in ("id", "label"):
        if header.count(column) != 1:
            raise MiradaError(f"{nodes_path} must have one column {column!r}: its columns are {', '.join(header)}")
    columns = (
        dict(zip(header, zip(*rows, strict=True), strict=True)) if len(set(header)) == len(header) and rows else None
    )
    if columns is None:
        raise MiradaError(f"{nodes_path} must have a header of different names and at least one row")
    labels_N, class_names = _labels(columns["label"], nodes_path)
    split = _splits(columns["split"], nodes_path) if "split" in columns else [None] * len(rows)
    index = [
        torch.tensor([n for n, own in enumerate(split) if own == wanted], dtype=torch.int64) for wanted in SPLIT_NAMES
    ]
    for name, nodes_of_split in zip(SPLIT_NAMES, index, strict=True):
        if (labels_N[nodes_of_split] == UNKNOWN).any():
            raise MiradaError(f"{nodes_path}: a node of the {name} split has no label: fill it in or empty its split")
    return Graph(
        name=nodes_path.resolve().parent.name,
        features_ND=_features(
            {name: cells for name, cells in columns.items() if name not in ("id", "label", "split")}, nodes_path
        ),
        edge_2E=_edges(_read_rows(edges_path), _numbering(columns["id"], nodes_path), edges_path, nodes_path),
        labels_N=labels_N,
        train_index=index[0],
        val_index=index[1],
        test_index=index[2],
        class_names=class_names,
    )


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


def _labels(cells: Sequence[str], path: Path) -> tuple[Tensor, tuple[str, ...]]:
    names = [clean_name(cell) for cell in cells]
    class_names = sort_names(set(names) - {""})
    if not class_names:
        raise MiradaError(f"{path}: no node has a label: fill in the column 'label' for those that are known")
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


def _edges(table: list[list[str]], number: dict[str, int], path: Path, nodes_path: Path) -> Tensor:
    header = [cell.lower() for cell in table[0]]
    if {"source", "target"} <= set(header):
        source, target, rows = header.index("source"), header.index("target"), table[1:]
    elif len(header) >= 2 and table[0][0] in number and table[0][1] in number:  # no header: the first row is an edge
        source, target, rows = 0, 1, table
    else:
        raise MiradaError(f"{path} must have the columns source and target: its first row is {', '.join(table[0])}")
    for row in rows:
        for node in (row[source], row[target]):
            if node not in number:
                raise MiradaError(f"{path} has an edge to the node {node!r}, which is not an id of {nodes_path.name}")
    pairs = [(number[row[source]], number[row[target]]) for row in rows]
    return undirected(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)
