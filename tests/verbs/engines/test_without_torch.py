"""An exported folder predicts without torch, and in the words of torch."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import mirada
from mirada.data.normalise import Normalisation
from mirada.data.normalise_array import normalise_array
from mirada.tasks.image import saved_task
from mirada.tasks.words import words_of
from tests.verbs.engines import exported_run

pytestmark = pytest.mark.xdist_group("engines")
HEAVY = ("torch", "scipy", "sklearn", "pandas", "matplotlib", "pydantic", "transformers", "safetensors", "jinja2")


def run_python(code: str, *words: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("to_file", [True, False])
def test_predict_of_an_exported_folder_loads_nothing_heavy(photos, tmp_path, to_file):
    pytest.importorskip("onnxruntime")
    folder, out = exported_run.folder(), tmp_path / "answers.csv"
    code = (
        "import sys, atexit\nfrom mirada.cli import main\natexit.register(lambda: print("
        f"[name for name in {HEAVY} if name in sys.modules], file=sys.stderr))\nmain()"
    )
    chosen = [photos / "bright" / f"{number}.png" for number in range(12 if to_file else 1)]
    ended = run_python(code, "predict", folder, *chosen, *(("-o", out) if to_file else ()))
    # Typer needs pydantic; where the words are simple it is not loaded either.
    assert ended.stderr.splitlines() == [str(["pydantic"] if to_file else [])]
    if not to_file:
        assert "bright" in ended.stdout
        return
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = mirada.load(exported_run.run()).rows(list(map(str, chosen)))
    assert [row["name"] for row in rows] == [row["name"] for row in wanted]
    for row, other in zip(rows, wanted, strict=True):
        assert row["predicted"] == other["predicted"]
        for key in ("confidence", "p_bright", "p_dark", "p_grey"):
            assert float(row[key]) == pytest.approx(other[key], abs=1e-5)


def test_loading_in_python_does_not_load_torch(photos):
    pytest.importorskip("onnxruntime")
    code = (
        "import sys, json, mirada\nanswers = mirada.load(sys.argv[1]).predict(sys.argv[2])\n"
        f"print(json.dumps([answers, [name for name in {HEAVY} if name in sys.modules]]))"
    )
    photo = photos / "grey" / "5.png"
    answers, heavy = json.loads(run_python(code, exported_run.folder(), photo).stdout)
    assert heavy == []
    assert answers[0]["predicted"] == mirada.load(exported_run.run()).predict(photo)[0]["predicted"]


def test_importing_the_package_is_light():
    code = f"import sys, mirada; print([name for name in ('numpy', 'PIL', *{HEAVY}) if name in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"


@pytest.mark.parametrize("size", [(5, 1, 7, 3), (2, 3, 11, 13)])
def test_pixels_are_normalised_alike(size):
    pixels = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    mean, std = (0.47, 0.31, 0.29)[: size[1]], (0.23, 0.17, 0.011)[: size[1]]
    wanted = Normalisation(mean, std).apply(torch.from_numpy(pixels))
    found = normalise_array(pixels, mean, std)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize(
    "data",
    [
        {"task": "single-label", "class_names": ["a", "b", "c"]},
        {"task": "multi-label", "class_names": ["a", "b", "c"]},
        {"task": "regression", "target_names": ["x", "y", "z"], "target_mean": [1, -2, 0.5], "target_std": [0.1, 0, 7]},
    ],
)
def test_words_are_those_of_the_task(data):
    outputs = torch.tensor([[1.25, -0.5, 800.0], [-900.0, 0.0, 2.0], [0.1, 0.2, -0.3]])
    assert words_of(data, outputs.numpy()) == saved_task(data).answers(outputs)


def test_probabilities_by_hand():
    (row,) = words_of({"task": "single-label", "class_names": ["a", "b"]}, np.log([[3.0, 1.0]]))
    assert row == {"predicted": "a", "confidence": 0.75, "p_a": 0.75, "p_b": 0.25}
    (row,) = words_of({"task": "multi-label", "class_names": ["a", "b"]}, np.log([[3.0, 1 / 4]]))
    assert row == {"predicted": "a", "confidence": 0.75, "p_a": 0.75, "p_b": 0.2}
    (row,) = words_of({"task": "pixels", "in_channels": 3}, np.log([8.0]))
    assert row == {"nats_per_pixel": 2.079442, "bits_per_dimension": 1.0}
