"""Means and paired differences by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mirada.compare.statistics import Interval, difference, mean_over_seeds, right_of
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder


def a_run(path: Path, right: list[bool], metric: str = "accuracy", value: float | None = None) -> RunFolder:
    run = RunFolder(path)
    path.mkdir(parents=True)
    lines = [f"n{row},{row},a,{'a' if is_right else 'b'}" for row, is_right in enumerate(right)]
    run.predictions.write_text("\n".join(["name,row,target,predicted", *reversed(lines)]))
    run.write_result({"metric": metric, "value": float(np.mean(right)) if value is None else value})
    return run


def test_student_over_three_seeds() -> None:
    # s = 0.1, t(0.975, 2) = 4.3027: half = 4.3027 · 0.1/√3
    found = mean_over_seeds([0.4, 0.5, 0.6])
    assert found.value == pytest.approx(0.5)
    assert found.high == pytest.approx(0.5 + 0.24842, abs=1e-5)
    assert found.low == pytest.approx(0.5 - 0.24842, abs=1e-5)


def test_one_seed_has_no_interval() -> None:
    assert mean_over_seeds([0.4]) == Interval(0.4, None, None)
    assert not mean_over_seeds([0.4]).is_clear


def test_rows_are_paired_whatever_their_order(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", [True, False, True])
    assert right_of(run.predictions).tolist() == [1.0, 0.0, 1.0]


def test_a_clear_and_an_unclear_difference(tmp_path: Path) -> None:
    better = [a_run(tmp_path / f"b{seed}", [True] * 90 + [False] * 11) for seed in range(2)]
    worse = [a_run(tmp_path / f"w{seed}", [True] * 50 + [False] * 51) for seed in range(2)]
    found = difference(better, worse)
    assert found.value == pytest.approx(40 / 101)
    assert found.is_clear
    assert found.low is not None and 0.28 < found.low < found.value
    # Each is right where the other is wrong, on halves of the images: nothing can be said.
    halves = [a_run(tmp_path / f"h{seed}", [False] * 51 + [True] * 50) for seed in range(2)]
    assert not difference(halves, worse).is_clear


def test_other_metrics_are_paired_by_seed(tmp_path: Path) -> None:
    ours = [a_run(tmp_path / f"o{seed}", [True], "r2", value) for seed, value in enumerate((0.5, 0.7))]
    first = [a_run(tmp_path / f"f{seed}", [True], "r2", value) for seed, value in enumerate((0.4, 0.4))]
    assert difference(ours, first).value == pytest.approx(0.2)


def test_predictions_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MiradaError, match="train this run again"):
        right_of(tmp_path / "predictions.csv")
