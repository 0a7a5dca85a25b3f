"""Readers of graphs: Planetoid files, opened with a restricted unpickler, and edge lists."""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from mirada.data.graphs import UNKNOWN, Graph, read_edge_list, read_planetoid, row_normalised, with_self_loops
from mirada.errors import MiradaError


def dump(folder: Path, part: str, content: object) -> None:
    (folder / f"ind.tiny.{part}").write_bytes(pickle.dumps(content, protocol=4))


@pytest.fixture
def tiny(tmp_path) -> Path:
    """Two training nodes, three more, then the test nodes 7 and 5: number 6 is missing, as some are in Citeseer."""
    features = np.arange(8 * 3, dtype=np.float32).reshape(8, 3)
    one_hot = np.eye(2, dtype=np.int32)[[0, 1, 1, 0, 1, 0, 0, 1]]
    for part, rows in {"x": [0, 1], "allx": [0, 1, 2, 3, 4], "tx": [7, 5]}.items():
        dump(tmp_path, part, sparse.csr_matrix(features[rows]))
    for part, rows in {"y": [0, 1], "ally": [0, 1, 2, 3, 4], "ty": [7, 5]}.items():
        dump(tmp_path, part, one_hot[rows])
    dump(tmp_path, "graph", defaultdict(list, {0: [1, 1, 0], 1: [0], 2: [7], 5: [3]}))
    (tmp_path / "ind.tiny.test.index").write_text("7\n5\n")
    return tmp_path


def test_planetoid_with_a_missing_test_id(tiny):
    graph = read_planetoid(tiny)
    assert graph.name == "tiny" and graph.num_nodes == 8 and graph.num_classes == 2
    assert graph.labels_N.tolist() == [0, 1, 1, 0, 1, 0, UNKNOWN, 1]
    assert graph.features_ND[[4, 5, 6, 7]].tolist() == [[12, 13, 14], [15, 16, 17], [0, 0, 0], [21, 22, 23]]
    assert graph.edge_2E.T.tolist() == [[0, 1], [1, 0], [2, 7], [3, 5], [5, 3], [7, 2]]
    assert [index.tolist() for index in (graph.train_index, graph.val_index, graph.test_index)] == [
        *([0, 1], [2, 3, 4], [5, 7])
    ]


def test_planetoid_cora(real_data):
    graph = read_planetoid(real_data("graph/cora"))
    assert graph.features_ND.shape == (2708, 1433)
    assert graph.edge_2E.shape == (2, 10556)
    assert (len(graph.train_index), len(graph.val_index), len(graph.test_index)) == (140, 500, 1000)
    assert graph.labels_N[graph.train_index].bincount().tolist() == [20] * 7
    assert not set(graph.val_index.tolist()) & set(graph.test_index.tolist())
    edges = set(map(tuple, graph.edge_2E.T.tolist()))
    assert all((j, i) in edges and i != j for i, j in edges)


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_malicious_pickle_is_refused_and_does_not_run(tiny):
    dump(tiny, "x", Malicious(tiny / "harm"))
    with pytest.raises(MiradaError, match=rf"ind\.tiny\.x.*{os.mkdir.__module__}\.mkdir"):
        read_planetoid(tiny)
    assert not (tiny / "harm").exists()


@pytest.mark.parametrize("call", [b"cbuiltins\neval\n(S'1'\ntR.", b"c__builtin__\ngetattr\n.", b"cnumpy\nload\n."])
def test_other_functions_are_refused(tiny, call):
    (tiny / "ind.tiny.graph").write_bytes(call)
    with pytest.raises(MiradaError, match="not loaded"):
        read_planetoid(tiny)


def test_a_sparse_matrix_that_points_outside_itself_is_refused(tiny):
    matrix = sparse.csr_matrix(np.eye(2, 3, dtype=np.float32))
    matrix.indices[1] = 1_000_003
    dump(tiny, "x", matrix)
    with pytest.raises(MiradaError, match=r"ind\.tiny\.x is not a readable pickle"):
        read_planetoid(tiny)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("graph", [1, 2], "dictionary"),
        ("graph", {0: [11]}, "not one of 0 … 7"),
        ("graph", {0: ["a"]}, "not one of 0 … 7"),
        ("graph", {0: 5}, "dictionary"),
        ("x", {0: [1]}, "matrix of numbers"),
        ("y", np.array([["a"]]), "matrix of numbers"),
        ("ally", np.eye(3), "do not belong together"),
        ("ty", np.eye(3), "do not belong together"),
        ("allx", np.ones((5, 7)), "do not belong together"),
        ("ally", np.ones((5, 0)), "do not belong together"),
        ("y", np.ones((7, 2)), "do not belong together"),
    ],
)
def test_planetoid_parts_that_do_not_fit(tiny, part, content, message):
    dump(tiny, part, content)
    with pytest.raises(MiradaError, match=message):
        read_planetoid(tiny)


@pytest.mark.parametrize("text", ["", "5\n5\n", "five", "-1\n5", "99999999999999999999"])
def test_planetoid_test_index_that_is_no_list_of_nodes(tiny, text):
    (tiny / "ind.tiny.test.index").write_text(text)
    with pytest.raises(MiradaError, match=r"test\.index must hold"):
        read_planetoid(tiny)


def test_planetoid_test_index_far_beyond_the_files(tiny):
    (tiny / "ind.tiny.test.index").write_text("5\n999999999999")
    with pytest.raises(MiradaError, match="do not belong together"):
        read_planetoid(tiny)


@pytest.mark.parametrize("part", ["x", "test.index"])
def test_planetoid_file_missing(tiny, part):
    (tiny / f"ind.tiny.{part}").unlink()
    with pytest.raises(MiradaError, match=f"{part} does not exist"):
        read_planetoid(tiny)


def test_planetoid_damaged_or_absent(tiny, tmp_path_factory):
    (tiny / "ind.tiny.x").write_bytes((tiny / "ind.tiny.x").read_bytes()[:31])
    with pytest.raises(MiradaError, match=r"ind\.tiny\.x is not a readable pickle"):
        read_planetoid(tiny)
    with pytest.raises(MiradaError, match="found none"):
        read_planetoid(tmp_path_factory.mktemp("empty"))


NODES = "id,label,split,width,height\na,cat,train,1,2\nb,dog,val,3,4.5\nc,,,5,6\nd,cat,Test,7,-8\n"
EDGES = "source,target\na,b\nb,a\nc,c\nb,d\n"


def written(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    (folder / "nodes.csv").write_text(nodes, "utf-8")
    (folder / "edges.csv").write_text(edges, "utf-8")
    return folder


def check_small_graph(graph: Graph) -> None:
    assert graph.features_ND.tolist() == [[1, 2], [3, 4.5], [5, 6], [7, -8]]
    assert graph.features_ND.dtype == torch.float32
    assert graph.labels_N.tolist() == [0, 1, UNKNOWN, 0] and graph.class_names == ("cat", "dog")
    assert graph.edge_2E.T.tolist() == [[0, 1], [1, 0], [1, 3], [3, 1]]
    assert [index.tolist() for index in (graph.train_index, graph.val_index, graph.test_index)] == [[0], [1], [3]]


def test_edge_list_from_a_folder(tmp_path):
    graph = read_edge_list(written(tmp_path))
    check_small_graph(graph)
    assert graph.name == tmp_path.name and graph.num_classes == 2


def test_edge_list_from_two_files_with_tabs_and_no_header_of_edges(tmp_path):
    (tmp_path / "cites.tsv").write_text(EDGES.split("\n", 1)[1].replace(",", "\t"))
    (tmp_path / "papers.tsv").write_text("\ufeff" + NODES.replace(",", "\t"), "utf-8")
    check_small_graph(read_edge_list(tmp_path / "cites.tsv", tmp_path / "papers.tsv"))


def test_edge_list_without_splits_or_edges(tmp_path):
    graph = read_edge_list(written(tmp_path, "id,label,x\na,1,1\nb,10,2\nc,2,3\n", "source,target\n"))
    assert graph.class_names == ("1", "2", "10")
    assert graph.edge_2E.shape == (2, 0)
    assert not (len(graph.train_index) or len(graph.val_index) or len(graph.test_index))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("id,label,label,x\na,cat,cat,1\n", EDGES, "different names"),
        ("name,label,x\na,cat,1\n", EDGES, "one column 'id'"),
        ("id,label,x,x\na,cat,1,2\n", EDGES, "different names"),
        ("id,label,x\n", EDGES, "at least one row"),
        ("id,label\na,cat\n", EDGES, "no feature column"),
        ("id,label,x\na,cat,1\na,dog,2\n", EDGES, "'a' is empty or used twice"),
        ("id,label,x\n,cat,1\nb,dog,2\n", EDGES, "'' is empty or used twice"),
        ("id,label,x\na,cat,tall\n", EDGES, "'tall' in the feature column 'x'"),
        ("id,label,x\na,cat,nan\n", EDGES, "not a finite number"),
        ("id,label,x\na,cat\n", EDGES, "row 2 has 2 cells"),
        ("id,label,split,x\na,cat,later,1\n", EDGES, "split 'later'"),
        ("id,label,split,x\na,,train,1\nb,cat,train,1\n", EDGES, "train split has no label"),
        ("", EDGES, "is empty"),
        (NODES, "", "is empty"),
        (NODES, "from,to\na,b\n", "columns source and target"),
        (NODES, "source\na\n", "columns source and target"),
        (NODES, "source,target\na,z\n", "node 'z', which is not an id of nodes.csv"),
    ],
)
def test_edge_list_errors(tmp_path, nodes, edges, message):
    with pytest.raises(MiradaError, match=message):
        read_edge_list(written(tmp_path, nodes, edges))


def test_edge_list_files_missing_or_unreadable(tmp_path):
    with pytest.raises(MiradaError, match=r"no edges\.csv"):
        read_edge_list(tmp_path)
    written(tmp_path)
    with pytest.raises(MiradaError, match=r"people\.csv does not exist"):
        read_edge_list(tmp_path / "edges.csv", tmp_path / "people.csv")
    (tmp_path / "nodes.csv").write_bytes(b"id,label\n\xff\xfe,\x00")
    with pytest.raises(MiradaError, match="UTF-8"):
        read_edge_list(tmp_path)


def test_row_normalisation_leaves_empty_rows(tiny):
    graph = row_normalised(read_planetoid(tiny))
    totals = graph.features_ND.sum(1)
    torch.testing.assert_close(totals, torch.tensor([1.0, 1, 1, 1, 1, 1, 0, 1]))
    torch.testing.assert_close(graph.features_ND[0], torch.tensor([0.0, 1 / 3, 2 / 3]))


def test_self_loops_are_added_once(tiny):
    once = with_self_loops(read_planetoid(tiny))
    assert once.edge_2E.shape == (2, 6 + 8)
    assert torch.equal(with_self_loops(once).edge_2E, once.edge_2E)
    assert once.neighbours().edge_2E.shape == (2, 14)
