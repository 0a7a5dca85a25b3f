"""The pickled files of the Planetoid data sets (Cora, Citeseer, Pubmed), opened without trusting them.

Shape letters: N nodes, E edges, D features.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from mirada.data.graph import UNKNOWN, CleanEdges, Graph, undirected
from mirada.errors import MiradaError

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph")
NUM_PLANETOID_VAL = 500


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
    edges = _planetoid_edges(part["graph"], num_nodes, folder / f"ind.{name}.graph")
    return Graph(
        name=name,
        features_ND=torch.from_numpy(features),
        edge_2E=edges.edge_2E,
        labels_N=torch.from_numpy(labels),
        train_index=_labelled(np.arange(num_train), labels),
        val_index=_labelled(np.arange(num_train, min(num_train + NUM_PLANETOID_VAL, num_all)), labels),
        test_index=_labelled(np.sort(test), labels),
        class_names=tuple(map(str, range(matrices["ally"].shape[1]))),
        source=str(folder),
        kind="planetoid",
        num_self_loops=edges.num_self_loops,
        num_duplicates=edges.num_duplicates,
    )


def _labelled(nodes: np.ndarray, labels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(nodes[labels[nodes] != UNKNOWN])


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


def _planetoid_edges(neighbours: object, num_nodes: int, path: Path) -> CleanEdges:
    if not isinstance(neighbours, dict) or not all(isinstance(seen, list) for seen in neighbours.values()):
        raise MiradaError(f"{path} must hold a dictionary from each node to a list of its neighbours")
    pairs = [(i, j) for i, seen in neighbours.items() for j in seen]
    if not all(isinstance(node, int) and 0 <= node < num_nodes for pair in pairs for node in pair):
        raise MiradaError(f"{path} names a node that is not one of 0 … {num_nodes - 1}")
    return undirected(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)
