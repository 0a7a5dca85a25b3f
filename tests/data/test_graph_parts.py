"""From a folder to a graph that can be trained on: recognised, looked at, split, scaled, handed out."""

import json

import numpy as np
import pytest
import torch
from tests.graphs import CLASSES, make_graph

from mirada.core import attention_layers
from mirada.data.graph_batches import NodeBatches, OnGraph
from mirada.data.graph_check import inspect_graph, render_graph, require_trainable_graph
from mirada.data.graph_features import FeatureScale, scale_for
from mirada.data.graph_split import split_nodes
from mirada.data.graphs import UNKNOWN, is_graph, open_graph
from mirada.data.splits import Split
from mirada.errors import MiradaError
from mirada.systems import create


@pytest.fixture
def folder(tmp_path):
    return make_graph(tmp_path / "friends")


def write(folder, nodes: str, edges: str = "source,target\na,b\n"):
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def test_a_graph_is_recognised_by_its_files(folder, tmp_path):
    assert is_graph(folder) and is_graph(folder / "edges.csv")
    assert not is_graph(tmp_path / "nowhere") and not is_graph(tmp_path)
    (folder / "photo.png").write_bytes(b"")
    assert is_graph(folder), "both tables are there"
    (folder / "edges.csv").unlink()
    assert not is_graph(folder), "nodes.csv may be the table of the images"
    (folder / "photo.png").unlink()
    with pytest.raises(MiradaError, match=r"has no edges\.csv"):
        open_graph(folder)
    with pytest.raises(MiradaError, match="nowhere: there is no such folder"):
        open_graph(tmp_path / "nowhere")
    with pytest.raises(MiradaError, match="there is no graph here"):
        open_graph(tmp_path)


def test_a_table_stands_for_its_folder(folder):
    assert open_graph(folder / "nodes.csv").checksum() == open_graph(folder).checksum()


def test_nodes_and_features_keep_their_names(folder):
    graph = open_graph(folder)
    assert graph.node_name(3) == "n3" and graph.feature_names == ("a", "b", "c") and graph.classes == CLASSES
    assert (graph.labels_N == UNKNOWN).nonzero().flatten().tolist() == list(range(0, 61, 7))
    assert set(graph.labelled) == {node for node in range(61) if node % 7}


def test_self_loops_duplicates_and_other_columns_are_counted(tmp_path):
    nodes = "id,label,x\na,1,1\nb,2,2\nc,1,3\nd,1,4\n"
    graph = open_graph(write(tmp_path / "g", nodes, "source,target,weight\na,b,1\na,b,2\nb,a,3\nc,c,1\nb,c,1\n"))
    assert (graph.num_edges, graph.num_self_loops, graph.num_duplicates) == (2, 1, 1)
    assert graph.notes == ("columns of edges.csv that are not used: weight.",)
    found = inspect_graph(graph)
    assert (found.num_isolated, found.max_degree, found.same_class) == (1, 2, 0.0)


def test_the_checksum_sees_features_edges_labels_and_names(tmp_path):
    nodes, edges = "id,label,x\na,1,1\nb,2,2\nc,1,3\n", "source,target\na,b\n"
    changed = [
        (nodes, edges),
        (nodes.replace("c,1,3", "c,1,4"), edges),
        (nodes.replace("c,1", "c,2"), edges),
        (nodes.replace("c,", "d,"), edges),
        (nodes.replace("x", "y"), edges),
        (nodes, edges + "b,c\n"),
    ]
    assert len({open_graph(write(tmp_path / "g", *files)).checksum() for files in changed}) == len(changed)


def test_nodes_without_a_split_are_divided_by_class_and_seed(folder):
    graph = open_graph(folder)
    split = split_nodes(graph, seed=3, val=0.2, test=0.2)
    sides = [split.train, split.val, split.test]
    assert sorted(np.concatenate(sides)) == sorted(graph.labelled), "each labelled node is on one side"
    assert all((graph.class_counts(side) > 0).all() for side in sides)
    assert split_nodes(graph, seed=3, val=0.2, test=0.2).checksum() == split.checksum()
    assert split_nodes(graph, seed=4, val=0.2, test=0.2).checksum() != split.checksum()
    assert Split.from_dict(json.loads(json.dumps(split.to_dict()))).checksum() == split.checksum()


def test_a_given_split_is_kept_and_completed(tmp_path):
    rows = [f"n{i},{'cat' if i % 2 else 'dog'},{'test' if i >= 16 else 'train'},{i}" for i in range(20)]
    edges = "source,target\nn0,n1\n"
    split = split_nodes(open_graph(write(tmp_path / "g", "\n".join(["id,label,split,x", *rows]), edges)))
    assert split.how == "given" and split.test.tolist() == [16, 17, 18, 19] and len(split.val) == 2
    assert "2 were taken out of train" in split.notes[0]
    rows = [row.replace("test", "val") for row in rows]
    split = split_nodes(open_graph(write(tmp_path / "g", "\n".join(["id,label,split,x", *rows]), edges)))
    assert not len(split.test) and "optimistic" in split.notes[0]


PAIR = "id,label,x\na,cat,1\nb,dog,2\n"


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (PAIR, "source,target\n", "no edges between different nodes"),
        (PAIR, "source,target\na,a\n", "no edges between different nodes"),
        ("id,x\na,1\nb,2\n", "source,target\na,b\n", "no node has a label"),
        ("id,label,x\na,,1\nb,,2\n", "source,target\na,b\n", "no node has a label"),
        (PAIR.replace("dog", "cat"), "source,target\na,b\n", "only one class \\('cat'\\)"),
        (PAIR, "source,target\na,b\n", "every class has a single node"),
        ("id,label,split,x\na,cat,val,1\nb,dog,test,2\n", "source,target\na,b\n", "no training nodes"),
    ],
)
def test_what_cannot_be_learnt_from_is_one_sentence(tmp_path, nodes, edges, words):
    graph = open_graph(write(tmp_path / "g", nodes, edges))
    with pytest.raises(MiradaError, match=words) as refusal:
        require_trainable_graph(graph)
    assert "\n" not in str(refusal.value) and "g: " in str(refusal.value)
    assert inspect_graph(graph).problems and "problem: " in render_graph(inspect_graph(graph))


def test_inspection_tells_what_is_odd(tmp_path):
    rows = [f"n{i},{'rare' if i < 3 else 'usual'},{i}" for i in range(40)]
    graph = open_graph(write(tmp_path / "g", "\n".join(["id,label,x", *rows]), "source,target\nn0,n1\nn5,n1\n"))
    found = inspect_graph(graph)
    assert not found.problems and found.class_counts == {"rare": {"all": 3}, "usual": {"all": 37}}
    assert "37 of 40 nodes have no neighbours" in found.warnings[0]
    assert "fewer than 10 nodes: rare (3)" in found.warnings[1] and "train.class_weights=true" in found.warnings[2]
    text = render_graph(found)
    assert "40 nodes and 2 edges" in text and "isolated  37 nodes" in text and text.endswith("ready to train")
    json.dumps(found.to_dict())


def test_inspection_of_cora(real_data):
    found = inspect_graph(open_graph(real_data("graph/cora")))
    assert (found.num_nodes, found.num_edges, found.num_isolated, found.num_duplicates) == (2708, 5278, 0, 302)
    assert found.split_counts == {"train": 140, "val": 500, "test": 1000} and not found.problems
    assert found.same_class == pytest.approx(0.81, abs=0.005)


def test_bags_of_words_are_divided_by_their_sum_and_measurements_standardised():
    words = torch.tensor([[0.0, 3, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]])
    scale = scale_for(words)
    assert scale.kind == "rows"
    torch.testing.assert_close(scale.apply(words).sum(1), torch.tensor([1.0, 0, 1]))
    measured = torch.tensor([[170.0, -2, 5], [180, 4, 5], [160, 1, 5]])
    scale = scale_for(measured)
    assert scale.kind == "columns"
    torch.testing.assert_close(scale.apply(measured).mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(scale.apply(measured).std(0, correction=0), torch.tensor([1.0, 1, 0]))
    assert FeatureScale.from_dict(json.loads(json.dumps(scale.to_dict()))) == scale


@pytest.mark.parametrize("system", ["gat", "mlp"])
@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_a_bound_model_answers_for_nodes_and_saves_itself_alone(folder, system, kind):
    graph = open_graph(folder)
    scale = FeatureScale("rows") if kind == "rows" else scale_for(graph.features_ND)
    model = create(system, in_channels=3, num_classes=5).eval()
    bound = OnGraph(model, graph, scale, torch.device("cpu"))
    nodes = torch.tensor([11, 2, 7])
    looped = torch.cat([graph.edge_2E, torch.arange(61).expand(2, -1)], dim=1)
    whole = model(scale.apply(graph.features_ND), type(bound.neighbours)(looped, 61, 61))
    torch.testing.assert_close(bound(nodes), whole[nodes])
    assert bound.state_dict().keys() == model.state_dict().keys()
    other = OnGraph(create(system, in_channels=3, num_classes=5).eval(), graph, scale, torch.device("cpu"))
    other.load_state_dict(bound.state_dict())
    assert torch.equal(other(nodes), bound(nodes))
    assert bool(attention_layers(bound)) == (system == "gat")


def test_edges_change_the_answers_of_gat_and_not_of_mlp(folder, tmp_path):
    graph = open_graph(folder)
    alone = open_graph(folder)
    object.__setattr__(alone, "edge_2E", graph.edge_2E[:, :0])
    scale, nodes = scale_for(graph.features_ND), torch.arange(61)
    for system, is_same in (("gat", False), ("mlp", True)):
        model = create(system, in_channels=3, num_classes=5).eval()
        answers = [OnGraph(model, each, scale, torch.device("cpu"))(nodes) for each in (graph, alone)]
        assert torch.equal(*answers) == is_same


def test_a_bound_model_moves_with_its_graph(folder):
    graph = open_graph(folder)
    model = create("gat", in_channels=3, num_classes=5)
    bound = OnGraph(model, graph, scale_for(graph.features_ND), torch.device("cpu")).to("meta")
    assert bound.neighbours.edge_2E.is_meta and bound.features_ND.is_meta


def test_all_training_nodes_are_one_batch(folder):
    graph = open_graph(folder)
    batches = NodeBatches(graph, np.array([3, 1, 11]))
    assert len(batches) == 1 and len(list(batches)) == 1 and batches.epoch == 1
    batch = batches.batch(7, 0)
    assert batch.inputs.tolist() == batch.rows.tolist() == [3, 1, 11]
    assert batch.targets.tolist() == graph.labels_N[[3, 1, 11]].tolist()
