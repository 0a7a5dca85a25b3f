"""int8 is written only if the held-out score stays; what was measured is kept."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import mirada
from mirada.errors import MiradaError
from mirada.verbs.engines import quantise
from mirada.verbs.engines.quantise import require_score
from tests.verbs.engines import exported_run

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.xdist_group("engines")


@pytest.mark.parametrize(
    ("metric", "before", "after"),
    [
        ("accuracy", 0.90, 0.895),
        ("accuracy", 0.90, 0.95),
        ("r2", 0.50, 0.4951),
        ("r2", -0.5, -0.5049),
        ("bits_per_dimension", 3.0, 3.03),
        ("bits_per_dimension", 3.0, 2.0),
    ],
)
def test_a_small_loss_is_borne(metric, before, after):
    require_score("run", metric, before, after, 1000)


@pytest.mark.parametrize(
    ("metric", "before", "after", "words"),
    [
        ("accuracy", 0.90, 0.8949, r"1,000 held-out samples goes from 0.9000 to 0.8949 \(0.51 points, more than 0.5\)"),
        ("f1", 0.50, 0.4949, r"\(0.0051, over 0.0050\)"),
        ("bits_per_dimension", 3.0, 3.031, "bits per dimension"),
        ("accuracy", 0.90, float("nan"), "int8 loses too much"),
    ],
)
def test_a_larger_loss_is_refused_with_both_scores(metric, before, after, words):
    with pytest.raises(MiradaError, match=words):
        require_score("run", metric, before, after, 1000)


def test_int8_of_a_run_is_measured_and_kept(photos):
    run = exported_run.run()
    found = mirada.load(run, engine="onnx", precision="int8")
    assert found.precision == "int8"
    np.testing.assert_allclose(found.outputs(photos), mirada.load(run).outputs(photos).numpy(), atol=0.05)
    kept = json.loads((run / "engines" / "onnx-int8" / "data.json").read_text())
    measured = kept["onnx"]["held_out"]
    assert measured["metric"] == "accuracy" and measured["num_held_out"] == mirada.evaluate(run).result["n"]
    assert measured["float32"] == mirada.evaluate(run).result["value"]
    assert measured["int8"] >= measured["float32"] - 0.005
    assert 0 < measured["root_mean_square_difference"] < 0.05
    model = onnx.load(run / "engines" / "onnx-int8" / "model.onnx")
    weights = [weight for weight in model.graph.initializer if weight.data_type == onnx.TensorProto.INT8]
    assert any(weight.name.endswith("_quantized") for weight in weights)
    assert "mirada" in {entry.key for entry in model.metadata_props}


def test_weights_have_seven_bits_and_a_scale_for_every_column():
    run = exported_run.run()
    mirada.load(run, engine="onnx", precision="int8")
    model = onnx.load(run / "engines" / "onnx-int8" / "model.onnx")
    arrays = {weight.name: onnx.numpy_helper.to_array(weight) for weight in model.graph.initializer}
    rounded = {name: array for name, array in arrays.items() if array.dtype == np.int8 and array.ndim == 2}
    assert rounded
    for name, array in rounded.items():
        assert np.abs(array.astype(int)).max() <= 64
        scales = arrays[name.replace("_quantized", "_scale")]
        assert scales.shape == (array.shape[1],) and len(np.unique(scales)) > 1


def test_what_loses_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(quantise, "MOST_POINTS", -2.0)
    with pytest.raises(MiradaError, match=r"int8 loses too much: accuracy on the .* held-out samples goes from"):
        mirada.export(exported_run.run(), to="onnx", precision="int8", out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_without_its_data_int8_is_refused(tmp_path, monkeypatch):
    mirada.export(exported_run.run(), out=tmp_path / "model")
    with pytest.raises(MiradaError, match=r"this data cannot be had .*is an exported model"):
        mirada.export(tmp_path / "model", to="onnx", precision="int8", out=tmp_path / "onnx")
    copied = Path(shutil.copytree(exported_run.run().parent, tmp_path / "run"))
    for config in (copied / "config.yaml", copied / "baseline" / "config.yaml"):
        text = config.read_text()
        source = next(line for line in text.splitlines() if line.strip().startswith("source:"))
        config.write_text(text.replace(source, source.split(":")[0] + ": " + str(tmp_path / "gone")))
    with pytest.raises(MiradaError, match=r"this data cannot be had .*gone"):
        mirada.export(copied / "baseline", to="onnx", precision="int8", out=tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_int8_is_for_onnx(tmp_path):
    with pytest.raises(MiradaError, match="int8 is for ONNX only"):
        mirada.export(exported_run.run(), precision="int8", out=tmp_path / "model")
