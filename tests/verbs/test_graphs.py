"""A graph through the verbs of images: train, resume, evaluate, predict, report, export."""

import csv
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import mirada
from mirada.data.graphs import open_graph
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.train import resume, train
from tests.graphs import make_graph
from tests.train.test_resume import StopAt

pytestmark = pytest.mark.xdist_group("graphs")  # what its tests share is made once

SHORT = ("train.epochs=12", "train.evaluations=4", "train.device=cpu")


@cache
def _place() -> TemporaryDirectory:
    return TemporaryDirectory(prefix="mirada-graphs-")


@cache
def _friends() -> Path:
    return make_graph(Path(_place().name) / "friends")


@cache
def _run() -> Path:
    return mirada.train(_friends(), settings=SHORT, out=Path(_place().name) / "run").path


@pytest.fixture
def friends() -> Path:
    return _friends()


@pytest.fixture
def run() -> Path:
    """Trained with a baseline and a report: read it, do not change it."""
    return _run()


@pytest.fixture
def own_run(tmp_path) -> Path:
    return Path(shutil.copytree(_run(), tmp_path / "own_run"))


@pytest.fixture
def no_report(monkeypatch):
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: path)


def rows_of(path: Path) -> list[dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_run_folder_is_that_of_images(run, friends):
    data, result = (json.loads((run / name).read_text()) for name in ("data.json", "result.json"))
    assert (data["inputs"], data["kind"], data["in_channels"]) == ("graph", "edge-list", 3)
    assert data["split"]["how"] == "stratified" and sum(data["num_nodes"].values()) == 52
    assert "image_size" not in data and data["graph"]["edges"] == open_graph(friends).num_edges
    assert (result["inputs"], result["system"], result["n"]) == ("graph", "gat", data["num_nodes"]["test"])
    predictions = rows_of(run / "predictions.csv")
    assert [int(row["row"]) for row in predictions] == data["split"]["test"]
    assert all(row["name"] == f"n{row['row']}" for row in predictions)
    baseline = json.loads((run / "baseline" / "result.json").read_text())
    assert baseline["system"] == "mlp" and baseline["n"] == result["n"]


def test_checkpoints_hold_the_model_alone(run):
    names = mirada.load(run).model.state_dict().keys()
    assert names and not any(name.startswith("model.") or "features" in name for name in names)


def test_the_report_speaks_of_nodes(run):
    page = (run / "report.html").read_text("utf-8")
    assert "held-out nodes" in page and "Edges within a class" in page
    assert "held-out image" not in page and "augment" not in page.split("<style>")[0] + page.split("</style>")[1]
    assert (run / "figures" / "attention.png").exists()
    assert "Strongest edges of 6 held-out nodes" in page


@pytest.mark.long
def test_the_report_without_its_graph_says_so(own_run, tmp_path):
    data = json.loads((own_run / "data.json").read_text())
    (own_run / "data.json").write_text(json.dumps(data | {"source": str(tmp_path / "gone")}))
    page = mirada.report(own_run).read_text("utf-8")
    assert "The held-out nodes cannot be shown" in page
    (own_run / "data.json").write_text(json.dumps(data | {"checksum": "0"}))
    assert "changed since the run" in mirada.report(own_run).read_text("utf-8")


def test_evaluating_again_gives_the_result_of_the_run(own_run):
    evaluation = mirada.evaluate(own_run)
    result = json.loads((own_run / "result.json").read_text())
    assert evaluation.result["value"] == result["value"] and evaluation.result["loss"] == result["loss"]
    assert [row["name"] for row in evaluation.rows] == [row["name"] for row in rows_of(own_run / "predictions.csv")]
    assert mirada.evaluate(own_run / "baseline").result["n"] == result["n"]


def test_evaluating_on_another_graph_uses_its_labelled_nodes(own_run, tmp_path):
    other = make_graph(tmp_path / "others", num_nodes=29, seed=5, columns=("c", "extra", "a", "b"))
    evaluation = mirada.evaluate(own_run, other)
    assert evaluation.result["n"] == len(open_graph(other).labelled) == len(evaluation.rows)
    assert evaluation.files[0].name == "evaluation-others.json"


def test_columns_are_matched_by_name_and_classes_too(own_run, friends, tmp_path):
    header, *rows = [line.split(",") for line in (friends / "nodes.csv").read_text().splitlines()]
    order = [4, 0, 3, 1, 2]
    lines = [",".join(row[n] for n in order) for row in (header, *rows) if row is header or row[1] != "blue"]
    kept = {line.split(",")[1] for line in lines}
    edges = [e for e in (friends / "edges.csv").read_text().splitlines()[1:] if set(e.split(",")) <= kept]
    fewer = tmp_path / "fewer"
    fewer.mkdir()
    (fewer / "nodes.csv").write_text("\n".join(lines))
    (fewer / "edges.csv").write_text("\n".join(["source,target", *edges]))
    model, graph = mirada.load(own_run), open_graph(fewer)
    torch.testing.assert_close(model.graph(fewer).features_ND, graph.features_ND[:, [2, 1, 0]])
    targets = {row["target"] for row in mirada.evaluate(model, fewer).rows}
    assert targets == {"green", "red"}


def test_predicting_answers_for_every_node_labelled_or_not(run, friends, tmp_path):
    rows = mirada.predict(run, friends, out=tmp_path / "answers.csv")
    assert [row["name"] for row in rows] == [f"n{node}" for node in range(61)]
    assert rows_of(tmp_path / "answers.csv")[3]["predicted"] == rows[3]["predicted"]
    answers = {row["name"]: row for row in rows}
    for held_out in rows_of(run / "predictions.csv"):
        assert answers[held_out["name"]]["confidence"] == float(held_out["confidence"])
    assert mirada.load(run).predict(open_graph(friends))[5]["predicted"] == rows[5]["predicted"]


def test_a_graph_without_labels_can_be_predicted_and_not_measured(run, friends, tmp_path):
    unknown = Path(shutil.copytree(friends, tmp_path / "unknown"))
    lines = [line.split(",") for line in (friends / "nodes.csv").read_text().splitlines()]
    (unknown / "nodes.csv").write_text("\n".join(",".join([row[0], *row[2:]]) for row in lines))
    assert mirada.predict(run, unknown) == mirada.predict(run, friends)
    with pytest.raises(MiradaError, match="no node has a label"):
        mirada.evaluate(run, unknown)
    with pytest.raises(MiradaError, match="no node has a label"):
        mirada.train(unknown, out=tmp_path / "run")


def test_exported_model_answers_alike_and_onnx_is_refused(run, friends, tmp_path):
    files = mirada.export(run, out=tmp_path / "model")
    assert sorted(file.name for file in files) == ["data.json", "model.json", "model.safetensors"]
    assert mirada.predict(tmp_path / "model", friends) == mirada.predict(run, friends)
    with pytest.raises(MiradaError, match="give the graph to evaluate it on"):
        mirada.evaluate(tmp_path / "model")
    with pytest.raises(MiradaError, match="safetensors only"):
        mirada.export(run, to="onnx", out=tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"system": "vit"}, "system 'vit' takes images, but .*friends holds a graph"),
        ({"preset": "small-data"}, "system 'vit' takes images, but .*friends holds a graph"),
        ({"settings": ["baseline.name=cnn"]}, "baseline 'cnn' takes images, but .*friends holds a graph"),
        ({"settings": ["augment.strength=strong"]}, "'augment.strength' is for images, but .*friends holds a graph"),
        ({"settings": ["train.batch_size=8"]}, "'train.batch_size' is for images"),
        ({"settings": ["data.label_column=x"]}, "'data.label_column' is for images"),
        ({"settings": ["data.task=regression"]}, "the task cannot be regression"),
        ({"settings": ["system.arguments.depth=0"]}, "at least its output layer"),
        ({"settings": ["data.val=0.6", "data.test=0.5"]}, "less than 1"),
    ],
)
def test_what_does_not_suit_a_graph_is_refused_before_anything_is_written(friends, tmp_path, settings, words):
    with pytest.raises(MiradaError, match=words):
        mirada.train(friends, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_other_data_that_does_not_fit_is_refused(run, friends, tmp_path):
    (tmp_path / "cat.jpg").write_bytes(b"")
    fewer = make_graph(tmp_path / "fewer", columns=("a", "b"))
    strange = Path(shutil.copytree(friends, tmp_path / "strange"))
    (strange / "nodes.csv").write_text((friends / "nodes.csv").read_text().replace("green", "violet"))
    for call, words in (
        (lambda: mirada.evaluate(run, friends), "is the data this model was trained on"),
        (lambda: mirada.evaluate(run, fewer), "has no feature 'c'"),
        (lambda: mirada.evaluate(run, strange), r"not trained on \(violet\)"),
        (lambda: mirada.evaluate(run, fewer, settings=["data.val=0.3"]), "leave them out"),
        (lambda: mirada.evaluate(run, tmp_path / "nowhere"), "nowhere: there is no such folder"),
        (lambda: mirada.predict(run, tmp_path / "cat.jpg"), "there is no graph here"),
        (lambda: mirada.predict(run, [friends, fewer]), "2 graphs are given"),
        (lambda: mirada.predict(run, 3), "int is not a graph"),
    ):
        with pytest.raises(MiradaError, match=words):
            call()


@pytest.mark.long
def test_a_model_of_images_refuses_a_graph(friends):
    from tests.verbs import trained_run

    with pytest.raises(MiradaError, match="holds a graph, but the model was trained on images"):
        mirada.evaluate(trained_run.run(), friends)
    with pytest.raises(MiradaError, match="no images in this folder"):
        mirada.predict(trained_run.run(), friends)


def outcome(folder: RunFolder) -> tuple:
    """Everything a run leaves behind, except how long it took."""
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in rows_of(folder.metrics)]
    return (folder.best / "model.safetensors").read_bytes(), rows, folder.predictions.read_bytes()


@pytest.mark.parametrize("step", [1, 5, 6, 11])
def test_a_stop_or_a_crash_then_resume_equals_never_having_stopped(friends, tmp_path, no_report, step):
    settings = (*SHORT, "train.checkpoint_seconds=1e-6", "baseline.name=none")
    whole = train(friends, settings=settings, out=tmp_path / "whole")
    stop = StopRequest()
    with pytest.raises(Stopped, match="mirada resume"):
        train(friends, settings=settings, out=tmp_path / "stopped", watcher=StopAt(step, stop), stop=stop)
    assert outcome(resume(tmp_path / "stopped")) == outcome(whole)
    with pytest.raises(RuntimeError, match="power cut"):
        train(friends, settings=settings, out=tmp_path / "crashed", watcher=StopAt(step))
    assert outcome(resume(tmp_path / "crashed")) == outcome(whole)


def test_resume_refuses_a_graph_that_changed(friends, tmp_path, no_report):
    folder = Path(shutil.copytree(friends, tmp_path / "friends"))
    stop = StopRequest()
    with pytest.raises(Stopped):
        train(folder, settings=SHORT, out=tmp_path / "run", watcher=StopAt(2, stop), stop=stop)
    with open(folder / "edges.csv", "a") as file:
        file.write("n1,n2\nn1,n3\nn1,n4\n")
    with pytest.raises(MiradaError, match="the data changed since this run started"):
        resume(tmp_path / "run")


def test_choosing_by_loss_keeps_the_weights_of_the_lowest_loss(run):
    rows = rows_of(run / "metrics.csv")
    lowest = min(rows, key=lambda row: float(row["val_loss"]))
    assert json.loads((run / "result.json").read_text())["best_step"] == int(lowest["step"])


def test_repeating_from_the_saved_settings_gives_the_same_run(run, tmp_path, no_report):
    again = mirada.train(config=run / "config.yaml", settings=["baseline.name=none"], out=tmp_path / "again")
    assert outcome(again) == outcome(RunFolder(run))


def test_cora_starts_with_its_own_split(real_data, tmp_path, no_report):
    folder = mirada.train(
        real_data("graph/cora"), settings=["train.epochs=2", "baseline.name=none"], out=tmp_path / "run"
    )
    data = folder.read_data()
    assert (data["num_nodes"], data["split"]["how"]) == ({"train": 140, "val": 500, "test": 1000}, "given")
    assert data["normalisation"]["kind"] == "rows" and folder.read_result()["n"] == 1000
    assert mirada.predict(folder.path, real_data("graph/cora"))[2707]["name"] == "2707"


@pytest.mark.long
def test_cora_by_the_preset_is_as_good_as_the_paper_says(real_data, tmp_path, no_report):
    """The paper: 83.0 ± 0.7; without edges 55.1."""
    folder = mirada.train(real_data("graph/cora"), out=tmp_path / "run")
    assert folder.read_result()["value"] > 0.81
    assert 0.5 < folder.baseline.read_result()["value"] < 0.65
