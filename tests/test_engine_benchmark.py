"""The measurement of engines: that it works where timm is and where it is not, and what the page says of it."""

import json
import sys

import numpy as np
import pytest
from benchmarks import engines, jobs, mask_engines
from benchmarks.engine_processes import watched
from benchmarks.page_engines import engines_text, rounding_text

pytest.importorskip("onnxruntime")


@pytest.mark.long
def test_engines_are_tried_out_and_not_done_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "RUNS", tmp_path)
    engines.main(["--try"])
    file = tmp_path / "engines-try" / "engines.json"
    kept = json.loads(file.read_text())
    assert set(engines.JOBS) < set(kept)
    assert {"torch", "onnx float32", "onnx int8"} <= set(kept["small"]["ms"])
    assert kept["small"]["difference"]["onnx float32"] < 1e-5
    used = kept["start"]["used"]
    assert 10 < used["mirada predict, exported folder"]["peak_mb"] < used["mirada predict, run by torch"]["peak_mb"] / 2
    assert kept["files"]["used"]["mirada onnx int8"]["seconds"] > 0
    stamp = file.stat().st_mtime_ns
    engines.main(["--try"])
    assert file.stat().st_mtime_ns == stamp
    assert "| onnx int8 |" in capsys.readouterr().out


def test_a_process_is_charged_what_it_uses_itself():
    ballast = np.ones(100 << 17)  # 100 MB of ours
    small = watched([sys.executable, "-c", "pass"])
    large = watched([sys.executable, "-c", f"b'1' * ({ballast.nbytes} // 2)"])
    assert 1 < small.peak_mb < 50 < large.peak_mb < 100
    assert 0 < small.cpu_seconds and small.seconds > 0


def test_a_process_that_fails_ends_the_measurement():
    with pytest.raises(SystemExit, match="no such thing"):
        watched([sys.executable, "-c", "raise ValueError('no such thing')"])


def test_a_job_that_is_not_there_is_told(capsys):
    with pytest.raises(SystemExit):
        engines.main(["smal"])
    assert "there are small, large, files, start" in capsys.readouterr().err


def test_what_the_page_says():
    shape = {"image_size": 32, "patch_size": 4, "dim": 192, "depth": 12}
    used = {"seconds": 20.0, "cpu_seconds": 30.0, "peak_mb": 123.4}
    results = {
        "machine": {"processor": "Abacus", "torch": "2.13"},
        "cores": 2,
        "small": {
            "shape": shape,
            "rounds": 41,
            "calls": 20,
            "num_parameters": 5_400_000,
            "ms": {"torch": [20, 19, 21], "onnx float32": [10, 9, 11], "timm": [21, 20, 22]},
            "faster_than_timm": {"torch": [1.05, 0.99, 1.1], "onnx float32": [2.1, 2.0, 2.2]},
            "difference": {"onnx float32": 3e-7},
        },
        "files": {
            "num_files": 10_000,
            "size": 64,
            "shape": shape,
            "int8": {"num_held_out": 78, "float32": 0.9615, "int8": 0.9487},
            "used": {"mirada onnx int8": used},
            "faster_than_timm": {"mirada onnx int8": [1.9, 1.8, 2.0]},
        },
        "start": {"used": {"timm": used}},
    }
    text = engines_text(results)
    assert "| torch | 20.00 ms (19.00–21.00) | tie (0.99–1.10) |  |" in text
    assert "| onnx float32 | 10.00 ms (9.00–11.00) | 2.10× (2.00–2.20) | 3e-07 |" in text
    assert "| mirada onnx int8 | 20.0 s | 500 | 30.0 s | 1.90× (1.80–2.00) |" in text
    assert "78 held-out photos" in text and "96.2 % right in float32 and 94.9 % in int8" in text
    assert "| timm | 30.00 s | 20.00 s | 123 MB |" in text
    assert engines_text({}) == ""


def test_what_the_page_says_of_rounding():
    of_all = {"contender": "preset", "steps": 1000, "num_parameters": 1234567}
    kept = {"dataset": "cifar10", "float32": 0.8022, "int8": 0.8, "num_held_out": 5000}
    lost = {"dataset": "pets", "refused": "int8 loses too much"}
    text = rounding_text([of_all | kept, of_all | lost])
    assert "| cifar10 | `vit` by the preset | 1,234,567 | 1,000 | 5,000 | 80.22 % | 80.00 % | -0.22 |" in text
    assert "refused: int8 loses too much" in text
    assert not rounding_text([])


@pytest.mark.long
def test_masks_by_engines_are_tried_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "RUNS", tmp_path)
    mask_engines.main(["--try"])
    kept = json.loads((tmp_path / "mask_engines-try" / "mask_engines.json").read_text())
    for found in kept["systems"].values():
        assert {"torch", "onnx float32"} <= set(found["ms"]) and "onnx int8" not in found["ms"]
        assert all(largest < 1e-4 for largest in found["difference"].values())
    assert "| `unet:micro` | onnx float32 |" in capsys.readouterr().out


def test_parts_of_results_keep_the_version_that_they_are_of(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "VERSION", "abc1234")
    made = {"machine": {"processor": "Abacus"}, "first": {"ms": 1.0}, "second": [2.0], "cores": 2}
    jobs.write_whole(tmp_path / "x.json", made)
    monkeypatch.setattr(jobs, "VERSION", "def5678")
    jobs.write_whole(tmp_path / "x.json", made | {"second": [3.0]})
    kept = json.loads((tmp_path / "x.json").read_text())
    assert kept["versions"] == {"first": "abc1234", "second": "def5678"}
    jobs.append_line(tmp_path / "x.jsonl", {"ms": 1.0})
    assert jobs.read_lines(tmp_path / "x.jsonl") == [{"ms": 1.0, "version": "def5678"}]
