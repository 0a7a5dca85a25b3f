"""Other engines give torch's answers, are made once and again for other weights, and say what they cannot do."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import mirada
from mirada.errors import MiradaError
from mirada.verbs import export_onnx
from mirada.verbs.engines import exported, make, session
from mirada.verbs.engines.exported import Exported
from tests.verbs.engines import exported_run
from tests.verbs.trained_run import make_photos

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.xdist_group("engines")  # what its tests share is made once


@pytest.fixture
def run() -> Path:
    return exported_run.run()


@pytest.fixture
def own_run(run, tmp_path) -> Path:
    """A copy that a test may write into, without engines."""
    copied = Path(shutil.copytree(run.parent, tmp_path / "own_run")) / "baseline"
    shutil.rmtree(copied / "engines", ignore_errors=True)
    return copied


@pytest.fixture
def folder() -> Path:
    return exported_run.folder()


def assert_same_rows(found: list[dict], wanted: list[dict], near: float = 1e-5) -> None:
    assert [list(row) for row in found] == [list(row) for row in wanted]
    for one, other in zip(found, wanted, strict=True):
        for key, value in other.items():
            assert one[key] == (pytest.approx(value, abs=near) if isinstance(value, float) else value)


def change_weights(run: Path) -> None:
    path = run / "best" / "model.safetensors"
    save_file({name: tensor * 1.25 for name, tensor in load_file(path).items()}, path)


def test_a_run_by_onnx_answers_as_by_torch(run, photos):
    found = mirada.load(run, engine="onnx")
    assert isinstance(found, Exported)
    by_torch = mirada.load(run)
    assert_same_rows(found.rows(photos), by_torch.rows(photos))
    assert (
        found.predict(photos / "dark" / "0.png")[0]["predicted"]
        == by_torch.predict(photos / "dark" / "0.png")[0]["predicted"]
    )
    np.testing.assert_allclose(found.outputs(photos), by_torch.outputs(photos).numpy(), rtol=1e-4, atol=1e-5)


def test_by_openvino(run, photos):
    pytest.importorskip("openvino", reason="OpenVINO is not installed, so its engine is not tested")
    assert_same_rows(mirada.load(run, engine="openvino").rows(photos), mirada.load(run).rows(photos))
    kept = json.loads((run / "engines" / "onnx-float32" / "data.json").read_text())["onnx"]
    assert kept["difference"].keys() == {"onnx", "openvino"}
    assert max(kept["difference"].values()) <= export_onnx.TOLERANCE


def test_an_exported_folder_is_used_as_it_is(run, folder, photos):
    assert sorted(path.name for path in folder.iterdir()) == ["data.json", "model.onnx"]
    kept = json.loads((folder / "data.json").read_text())
    assert kept["onnx"]["precision"] == "float32" and 0 <= kept["onnx"]["difference"]["onnx"] <= 1e-5
    assert kept["model"]["system"] == "cnn" and kept["model"]["num_parameters"] > 100
    assert_same_rows(mirada.load(folder).rows(photos), mirada.load(run).rows(photos))


@pytest.mark.long
def test_the_file_of_an_engine_is_made_once_and_again_for_other_weights(own_run, photos, monkeypatch):
    first = mirada.load(own_run, engine="onnx").outputs(photos)
    made = own_run / "engines" / "onnx-float32"
    stamp = (made / "model.onnx").stat().st_mtime_ns
    monkeypatch.setattr(make, "_make", lambda *words: pytest.fail("made again"))
    assert (mirada.load(own_run, engine="onnx").outputs(photos) == first).all()
    assert (made / "model.onnx").stat().st_mtime_ns == stamp
    monkeypatch.undo()
    change_weights(own_run)
    again = mirada.load(own_run, engine="onnx").outputs(photos)
    np.testing.assert_allclose(again, mirada.load(own_run).outputs(photos).numpy(), rtol=1e-4, atol=1e-5)
    assert not np.allclose(again, first, rtol=1e-2)


def test_a_file_that_was_half_written_is_made_again(own_run, photos):
    folder = own_run / "engines" / "onnx-float32"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"half")
    assert mirada.load(own_run, engine="onnx").outputs(photos).shape == (60, 3)


def test_what_differs_from_torch_is_not_used(own_run, monkeypatch):
    monkeypatch.setattr(export_onnx, "TOLERANCE", -1.0)
    with pytest.raises(MiradaError, match=r"differs from the model itself by .* so it was not written"):
        mirada.load(own_run, engine="onnx")
    assert not (own_run / "engines").exists()


def test_broken_images_have_their_reason_and_the_order_stays(run, tmp_path):
    photos = make_photos(tmp_path / "new", per_class=9, seed=3)
    (photos / "dark" / "3.png").write_bytes(b"no image")
    names = sorted(map(str, photos.rglob("*.png")))
    found, done = mirada.load(run, engine="onnx"), []
    rows = found.rows(names, progress=lambda *counted: done.append(counted))
    assert len(names) > exported.BATCH and [row["name"] for row in rows] == names
    assert_same_rows(rows, mirada.load(run).rows(names))
    assert [Path(row["name"]).name for row in rows if row["error"]] == ["3.png"]
    assert done[-1] == (27, 27)
    with pytest.raises(MiradaError, match="not an image"):
        found.outputs(photos)
    with pytest.raises(MiradaError, match="no images are given"):
        found.rows([])
    with pytest.raises(MiradaError, match="none of 1 images can be read"):
        found.rows(photos / "dark" / "3.png")


def test_arrays_and_pillow_images(run):
    pixels = np.random.default_rng(0).integers(0, 256, (11, 13, 17, 3), dtype=np.uint8)
    found, by_torch = mirada.load(run, engine="onnx"), mirada.load(run)
    assert_same_rows(found.rows(pixels), by_torch.rows(pixels))
    assert_same_rows(found.predict(Image.fromarray(pixels[0])), by_torch.predict(Image.fromarray(pixels[0])))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"engine": "tensorrt"}, "engine 'tensorrt': expected one of torch, onnx, openvino"),
        ({"engine": "onnx", "precision": "int4"}, "precision 'int4' .*: expected one of float32, int8"),
        ({"precision": "int8"}, "int8 is for the engine onnx, not for torch"),
        ({"engine": "openvino", "precision": "int8"}, "int8 is for the engine onnx, not for openvino"),
        ({"engine": "onnx", "device": "cuda"}, "computes on the CPU; leave --device cuda out"),
    ],
)
def test_what_does_not_fit_is_refused(run, words, sentence):
    with pytest.raises(MiradaError, match=sentence):
        mirada.load(run, **words)


def test_a_missing_package_is_named(run, folder, monkeypatch):
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    for words in ({"engine": "onnx"}, {"engine": "openvino"}):
        with pytest.raises(MiradaError, match="pip install"):
            mirada.load(run, **words)
    with pytest.raises(MiradaError, match="--engine onnx needs onnxruntime: pip install onnxruntime"):
        mirada.load(folder)


def test_an_exported_folder_has_one_precision_and_cannot_be_explained(folder, photos):
    with pytest.raises(MiradaError, match="is a model in float32, not in int8"):
        mirada.load(folder, precision="int8")
    with pytest.raises(MiradaError, match="holds an ONNX model only, which predicts and nothing else"):
        mirada.explain(folder, photos / "dark" / "0.png")
    with pytest.raises(MiradaError, match="holds an ONNX model only"):
        mirada.load(folder, engine="torch")
    with pytest.raises(MiradaError, match="by onnx a model only predicts"):
        mirada.evaluate(mirada.load(folder))


def test_a_spoilt_file_is_a_sentence(folder, tmp_path):
    spoilt = Path(shutil.copytree(folder, tmp_path / "spoilt"))
    (spoilt / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(MiradaError, match="onnxruntime cannot open this model"):
        mirada.load(spoilt).predict(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.long
def test_a_transformer_by_all_precisions(tmp_path, photos):
    from tests.verbs.trained_run import run as trained

    copied = Path(shutil.copytree(trained(), tmp_path / "run"))
    wanted = mirada.load(copied).rows(photos)
    assert_same_rows(mirada.load(copied, engine="onnx").rows(photos), wanted)
    rounded = mirada.load(copied, engine="onnx", precision="int8")
    assert rounded.precision == "int8"
    shares = [[row[f"p_{name}"] for name in ("bright", "dark", "grey")] for row in wanted]
    found = [[row[f"p_{name}"] for name in ("bright", "dark", "grey")] for row in rounded.rows(photos)]
    np.testing.assert_allclose(found, shares, atol=0.05)
    kept = rounded.data["onnx"]["held_out"]
    assert kept["int8"] >= kept["float32"] - 0.005 and kept["root_mean_square_difference"] < 0.1


FIRST_CALLS = """
import sys, threading
from pathlib import Path
import numpy as np
from mirada.verbs.engines.session import open_session

session = open_session(Path(sys.argv[1]), "openvino", 1, calls=2)
images, together = np.ones((1, 3, 8, 8), np.float32), threading.Barrier(2)
threads = [threading.Thread(target=lambda: (together.wait(), session(images)), daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(sum(thread.is_alive() for thread in threads), "wait for ever", flush=True)
"""


def test_two_threads_may_be_the_first_to_ask_openvino(folder):
    pytest.importorskip("openvino")
    command = [sys.executable, "-c", FIRST_CALLS, str(folder / "model.onnx")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout.strip() == "0 wait for ever", said.stderr


def test_an_engine_that_differs_on_an_exported_folder_is_refused(folder, monkeypatch):
    pytest.importorskip("openvino")
    monkeypatch.setattr(exported, "TOLERANCE", -1.0)
    with pytest.raises(MiradaError, match="by openvino it differs from ONNX Runtime"):
        mirada.load(folder, engine="openvino")
