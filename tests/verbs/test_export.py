"""Exported files give the answers of the model, or are not written."""

import importlib.util
import json

import pytest
import torch

import mirada
from mirada.errors import MiradaError
from mirada.verbs import export_onnx
from mirada.verbs.load import Trained
from tests.verbs.trained_run import make_photos


def test_exported_folder_loads_and_answers_alike(run, photos, tmp_path):
    files = mirada.export(run, out=tmp_path / "model")
    assert sorted(file.name for file in files) == ["data.json", "model.json", "model.safetensors"]
    torch.testing.assert_close(
        mirada.load(tmp_path / "model").outputs(photos), mirada.load(run).outputs(photos), rtol=0, atol=0
    )


def test_exported_folder_can_be_evaluated_on_other_images_only(run, tmp_path):
    mirada.export(run, out=tmp_path / "model")
    other = make_photos(tmp_path / "other", per_class=2, seed=5)
    assert mirada.evaluate(tmp_path / "model", other).result["n"] == 6
    with pytest.raises(MiradaError, match="is an exported model"):
        mirada.evaluate(tmp_path / "model")


def test_export_does_not_overwrite_a_run(own_run):
    before = (own_run / "data.json").read_text()
    with pytest.raises(MiradaError, match="is the folder of a run"):
        mirada.export(own_run, out=own_run)
    assert (own_run / "data.json").read_text() == before


@pytest.mark.parametrize("to", ["safetensors", "onnx", "transformers"])
def test_the_model_itself_is_not_written_over(to, own_run, tmp_path):
    mirada.export(own_run, out=tmp_path / "model")
    for source, out in ((own_run, own_run / "best"), (tmp_path / "model", tmp_path / "model")):
        before = {file.name: file.read_bytes() for file in out.iterdir()}
        with pytest.raises(MiradaError, match="holds the model that is exported; give another folder"):
            mirada.export(source, to=to, out=out)
        assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_unknown_format_is_refused(run, tmp_path):
    with pytest.raises(MiradaError, match="cannot export to 'pickle'"):
        mirada.export(run, to="pickle", out=tmp_path / "model")


def test_missing_extra_is_a_sentence_with_the_command(run, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(MiradaError, match=r'needs onnxscript: pip install "mirada\[export\]"'):
        mirada.export(run, to="onnx", out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_onnx_gives_the_same_answers_at_any_batch_and_carries_its_labels(run, photos, tmp_path):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    mirada.export(run / "baseline", to="onnx", out=tmp_path / "model")
    path = tmp_path / "model" / "model.onnx"
    described = json.loads({prop.key: prop.value for prop in onnx.load(path).metadata_props}["mirada"])
    assert described["class_names"] == ["bright", "dark", "grey"]
    assert len(described["normalisation"]["mean"]) == 3
    trained = mirada.load(run / "baseline")
    session = onnxruntime.InferenceSession(path)
    for batch in (2, 11):
        images = torch.randn(batch, 3, 8, 8)
        with torch.inference_mode():
            wanted = trained.model(images)
        found = torch.from_numpy(session.run(["outputs"], {"images": images.numpy()})[0])
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)


@pytest.mark.long
def test_onnx_of_a_transformer(run, tmp_path):
    pytest.importorskip("onnxruntime")
    assert mirada.export(run, to="onnx", out=tmp_path / "model")[0].exists()


@pytest.mark.long
def test_an_export_leaves_nothing_of_an_earlier_one(run, tmp_path):
    pytest.importorskip("onnxruntime")
    mirada.export(run / "baseline", to="onnx", out=tmp_path / "model")
    mirada.export(run / "baseline", out=tmp_path / "model")
    assert not (tmp_path / "model" / "model.onnx").exists()
    assert isinstance(mirada.load(tmp_path / "model"), Trained)
    mirada.export(run / "baseline", to="onnx", out=tmp_path / "model")
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_onnx_that_differs_is_not_written(run, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(export_onnx, "TOLERANCE", -1.0)
    with pytest.raises(MiradaError, match="so it was not written"):
        mirada.export(run / "baseline", to="onnx", out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_model_that_cannot_be_exported_is_refused_with_the_reason(run, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("no such\noperator")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(MiradaError, match=r"cannot be exported to ONNX \(no such operator\)"):
        mirada.export(run, to="onnx", out=tmp_path / "model")
