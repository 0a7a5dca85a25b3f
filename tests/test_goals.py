"""What the table of goals says, from made-up results."""

import json
from pathlib import Path

from benchmarks.goals import GOALS, goals_text
from benchmarks.jobs import RESULTS

MACHINE = {"processor": "Abacus", "torch": "2", "python": "3"}


def write(results: Path, name: str, content: dict) -> None:
    (results / f"{name}.json").write_text(json.dumps({"machine": MACHINE, **content}))


def test_nothing_is_said_before_there_are_results(tmp_path):
    assert goals_text(tmp_path) == ""


def test_a_ratio_is_judged_by_its_median_and_told_with_its_quartiles(tmp_path):
    part = {"batch": 64, "difference": 3e-5}
    write(tmp_path, "scale_out", {"train": part | {"ratio": [1.71, 1.6, 1.8]}})
    text = goals_text(tmp_path)
    assert "| two processes beside one, a step of 64 images | ≥ 1.7× | 1.71× (1.60–1.80) | yes | Abacus |" in text
    assert "difference of their losses | ≤ 1e-05 | 3e-05 | **no** | Abacus |" in text
    assert "1 of 2 are reached" in text


def test_a_step_is_compared_with_the_fastest_library_and_not_with_ourselves(tmp_path):
    ratios = {"timm": [1.2, 1.1, 1.3], "x-transformers": [0.9, 0.8, 0.95], "mirada, usual memory": [0.5, 0.5, 0.5]}
    profile = {"digits": {"outside": 0.031}}
    write(tmp_path, "throughput", {"step": {"shapes": {"small": {"faster_than": ratios}}}, "profile": profile})
    text = goals_text(tmp_path)
    assert "| 0.90× (0.80–0.95), x-transformers | **no** |" in text
    assert "digits | ≤ 3 % | 3.1 % | **no** |" in text


def test_a_precision_that_was_chosen_must_not_be_slower(tmp_path):
    models = {
        "a": {"chosen": "float32", "bfloat16_faster": [0.5, 0.4, 0.6]},
        "b": {"chosen": "bfloat16", "bfloat16_faster": [0.95, 0.9, 0.97]},
    }
    write(tmp_path, "precision", {"models": models})
    text = goals_text(tmp_path)
    assert "float32, a | not slower | float32, 1.00× (1.00–1.00) | yes | Abacus |" in text
    assert "float32, b | not slower | bfloat16, 0.95× (0.90–0.97) | **no** | Abacus |" in text


def test_what_was_not_measured_of_a_part_is_left_out(tmp_path):
    write(tmp_path, "decoding", {"rows": {"a": {"int8_faster_than": {"transformers": [2.5, 2.4, 2.6]}}}})
    (tmp_path / "small_data_steps.json").write_text(json.dumps({"cifar10/cnn": {"threads": 2}}))
    assert "1 of 1 are reached" in goals_text(tmp_path)


def test_only_engines_that_agree_with_torch_count_as_float32(tmp_path):
    ratios = {"torch": [1, 1, 1], "onnx float32": [9, 9, 9], "openvino float32": [1.5, 1.4, 1.6]}
    differences = {"onnx float32": 1e-3, "openvino float32": 1e-6}
    write(tmp_path, "engines", {"small": {"faster_than_timm": ratios, "difference": differences}})
    assert "| 1.50× (1.40–1.60), openvino float32 | yes |" in goals_text(tmp_path)


def test_translating_is_compared_with_the_fastest_loop_without_a_cache(tmp_path):
    faster = {
        "transformers": [2.5, 2.4, 2.6],
        "transformers without a cache": [12, 11, 13],
        "mirada without a cache": [7, 6, 8],
    }
    write(tmp_path, "decoding", {"rows": {"translating by base": {"int8_faster_than": faster}}})
    assert "| ≥ 8× | 7.00× (6.00–8.00), mirada without a cache | **no** |" in goals_text(tmp_path)


def test_every_kind_of_goal_has_been_measured():
    for lines, _ in GOALS:
        assert list(lines(RESULTS)), lines.__name__
