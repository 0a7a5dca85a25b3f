"""What a model is worth: on its own held-out images, and on others whose classes are matched by name."""

import csv
import json

import numpy as np
import pytest

import mirada
from mirada.errors import MiradaError
from tests.verbs.trained_run import make_photos


def test_held_out_images_give_the_numbers_of_the_run(own_run):
    evaluation = mirada.evaluate(own_run)
    wanted = json.loads((own_run / "result.json").read_text())
    for key in ("metric", "value", "low", "high", "n", "loss", "confusion"):
        assert evaluation.result[key] == wanted[key]
    assert (own_run / "evaluation-test.csv").read_text() == (own_run / "predictions.csv").read_text()
    assert json.loads((own_run / "evaluation-test.json").read_text())["value"] == wanted["value"]


def test_classes_of_other_images_are_matched_by_name(own_run, tmp_path):
    """With only two of three classes, 'grey' is number 1 there and number 2 for the model."""
    other = make_photos(tmp_path / "other", ("bright", "grey"), per_class=7, seed=1)
    evaluation = mirada.evaluate(own_run, other)
    answers = mirada.load(own_run).predict(other)
    targets = ["bright"] * 7 + ["grey"] * 7
    assert [row["target"] for row in evaluation.rows] == targets
    right = [answer["predicted"] == target for answer, target in zip(answers, targets, strict=True)]
    assert evaluation.result["value"] == pytest.approx(np.mean(right))
    assert evaluation.result["n"] == 14
    assert [row["support"] for row in evaluation.result["per_class"]] == [7, 0, 7]
    with open(own_run / "evaluation-other.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 14


def test_other_table_is_read_by_settings(own_run, tmp_path):
    other = make_photos(tmp_path / "other", per_class=3, seed=2)
    rows = [f"other/{name}/{n}.png,{name},{n}" for name in ("bright", "dark", "grey") for n in range(3)]
    (tmp_path / "list.csv").write_text("\n".join(["where,what,label", *rows]))
    settings = ["data.path_column=where", "data.label_column=what"]
    assert mirada.evaluate(own_run, tmp_path / "list.csv", settings=settings).result["n"] == 9
    assert other.exists()


def test_broken_images_are_left_out_and_named(own_run, tmp_path):
    other = make_photos(tmp_path / "other", per_class=3, seed=3)
    (other / "dark" / "x.png").write_text("not an image")
    result = mirada.evaluate(own_run, other).result
    assert result["n"] == 9
    assert [image["name"].endswith("x.png") for image in result["broken"]] == [True]


def test_unknown_classes_are_refused_and_nothing_is_written(own_run, tmp_path):
    other = make_photos(tmp_path / "other", ("dark", "green"), per_class=2)
    before = sorted(own_run.iterdir())
    with pytest.raises(
        MiradaError, match=r"classes the model was not trained on \(green\), it knows bright, dark, grey"
    ):
        mirada.evaluate(own_run, other)
    assert sorted(own_run.iterdir()) == before


def test_the_training_data_itself_is_refused(own_run, photos):
    with pytest.raises(MiradaError, match="is the data this model was trained on"):
        mirada.evaluate(own_run, photos)


def test_another_task_is_refused(own_run, tmp_path):
    make_photos(tmp_path / "other", ("dark",), per_class=4)
    lines = [f"other/dark/{n}.png,{n * 1.37}" for n in range(4)]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *lines]))
    with pytest.raises(MiradaError, match="regression"):
        mirada.evaluate(own_run, tmp_path / "list.csv", settings=["data.task=regression"])


def test_settings_of_training_are_refused(own_run, tmp_path):
    with pytest.raises(MiradaError, match="no meaning for evaluating"):
        mirada.evaluate(own_run, tmp_path, settings=["train.epochs=3"])


def test_data_that_changed_is_refused(own_run):
    data = json.loads((own_run / "data.json").read_text())
    (own_run / "data.json").write_text(json.dumps(data | {"checksum": "0"}))
    with pytest.raises(MiradaError, match="the data changed"):
        mirada.evaluate(own_run)
