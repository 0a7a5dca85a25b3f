"""Masks by other engines than torch: what has the trained size; all else stays with torch."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import mirada
from mirada.cli.app import app
from mirada.errors import MiradaError
from mirada.serve.card import _model
from mirada.verbs.masks.trained import TrainedMasks, masks_run
from tests.shapes import run, shapes, tiled_run

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("engine", ["onnx", pytest.param("openvino", marks=pytest.mark.long)])
def test_masks_are_those_of_torch(engine):
    if engine == "openvino":
        pytest.importorskip("openvino")
    by_torch, by_engine = masks_run(run()), mirada.load(run(), engine=engine)
    assert isinstance(by_engine, TrainedMasks) and _model(by_engine)["engine"] == engine
    pixels = np.random.default_rng(0).integers(0, 256, (45, 61, 3), np.uint8)
    assert (by_engine.segment(pixels) == by_torch.segment(pixels)).mean() > 0.999
    asked = []
    session = by_engine.session
    object.__setattr__(by_engine, "session", lambda inputs: asked.append(inputs.shape) or session(inputs))
    by_engine.segment(pixels)
    assert asked == [(1, 3, *by_engine.data["image_size"])]


@pytest.mark.long
def test_windows_of_another_size_stay_with_torch():
    by_engine, by_torch = mirada.load(tiled_run(), engine="onnx"), masks_run(tiled_run())
    height, width = by_engine.data["image_size"]
    asked = []
    session = by_engine.session
    object.__setattr__(by_engine, "session", lambda inputs: asked.append(inputs.shape) or session(inputs))
    smaller = np.random.default_rng(0).integers(0, 256, (height - 8, width - 8, 3), np.uint8)
    assert np.array_equal(by_engine.segment(smaller), by_torch.segment(smaller)) and not asked
    larger = np.random.default_rng(1).integers(0, 256, (2 * height, 2 * width + 3, 3), np.uint8)
    assert (by_engine.segment(larger) == by_torch.segment(larger)).mean() > 0.999 and asked


def test_on_the_command_line(tmp_path):
    words = ["segment", run(), shapes() / "images", "-o", tmp_path, "--engine", "onnx"]
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    assert len(list(tmp_path.glob("*.png"))) == 24
    with pytest.raises(MiradaError, match="masks are computed in float32, not in int8"):
        mirada.load(run(), engine="onnx", precision="int8")
