"""Engines on the command line."""

import pytest

from tests.verbs.engines import exported_run
from tests.verbs.text import texts

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.xdist_group("engines")


@pytest.mark.long
def test_export_and_predict(mirada, photos):
    ended = mirada("export", exported_run.run(), "--to", "onnx", "--precision", "int8", "-o", "model")
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.splitlines() == ["wrote model/model.onnx", "wrote model/data.json"]
    photo = photos / "dark" / "1.png"
    by_torch = mirada("predict", exported_run.run(), photo)
    assert by_torch.exit_code == 0 and "dark" in by_torch.stdout
    for words in (("model",), ("model", "--precision", "int8"), (exported_run.run(), "--engine", "onnx")):
        ended = mirada("predict", words[0], photo, *words[1:])
        assert ended.exit_code == 0, ended.output
        assert ended.stdout.split()[:3] == by_torch.stdout.split()[:3]
        assert " dark " in ended.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["predict", "RUN", "PHOTO", "--precision", "int8"], "int8 is for the engine onnx"),
        (["predict", "RUN", "PHOTO", "--engine", "onnx", "--device", "cuda"], "computes on the CPU"),
        (["serve", "RUN", "--engine", "openvino", "--precision", "int8"], "not for openvino"),
        (["predict", "FOLDER", "PHOTO", "--precision", "int8"], "is a model in float32, not in int8"),
        (["explain", "FOLDER", "PHOTO"], "holds an ONNX model only"),
        (["predict", "TEXT", "a text", "--engine", "onnx"], "models of text predict by torch only"),
        (["export", "TEXT", "--to", "onnx"], "models of text are not exported to ONNX"),
    ],
)
def test_what_an_engine_cannot_do_is_one_sentence(mirada, photos, words, sentence):
    places = {"RUN": exported_run.run(), "FOLDER": exported_run.folder(), "PHOTO": photos / "dark" / "1.png"}
    if "TEXT" in words:
        places["TEXT"] = texts.run("labels")
    ended = mirada(*(places.get(word, word) for word in words))
    said = " ".join(ended.stderr.split())
    assert ended.exit_code == 2 and sentence in said
    assert said.startswith("mirada: ") and "Traceback" not in ended.output
