"""Who is ahead, and is it clear: statistics by hand, and the sentence for each case."""

import re

import numpy as np
import pytest

from mirada.report.contents import read_contents
from mirada.report.facts import repeat_facts
from mirada.report.paired import Difference, compare, mcnemar, paired_difference
from mirada.report.verdict import trivial, verdict
from mirada.report.wording import duration, interval_text, result_sentence
from tests.report.fabricated import digits_run, labels_run, numbers_run


def test_mcnemar_by_hand():
    """7 images only the model gets, 1 only the baseline: p = 2 (C(8,0) + C(8,1)) / 2⁸ = 18/256."""
    model = np.array([True] * 7 + [False] + [True] * 5)
    baseline = np.array([False] * 7 + [True] + [True] * 5)
    test = mcnemar(model, baseline)
    assert (test.only_model, test.only_baseline) == (7, 1)
    assert test.p == pytest.approx(18 / 256)
    assert not test.is_clear


def test_mcnemar_of_equal_answers():
    assert mcnemar(np.array([True, False]), np.array([True, False])).p == 1.0


def test_paired_difference_is_narrow_where_both_move_together():
    values = np.random.default_rng(0).normal(size=101)
    difference = paired_difference(lambda rows: values[rows].mean() + 0.1, lambda rows: values[rows].mean(), 101)
    assert (difference.low, difference.high) == pytest.approx((0.1, 0.1))
    assert difference.is_clear
    assert not Difference(-0.1, 0.2).is_clear


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (0.95, 0.6, "The vit is .* points ahead of the cnn, and that is clear"),
        (0.6, 0.95, "^A CNN does better on this data: the cnn is .* points ahead, and that is clear"),
        (0.9, 0.9, "cannot tell the two apart"),
    ],
)
def test_verdict(tmp_path, ours, theirs, said):
    run = read_contents(digits_run(tmp_path / "run", share_right=ours, baseline_right=theirs).path)
    assert re.search(said, verdict(run))
    assert "McNemar" in verdict(run)


@pytest.mark.parametrize("make", [labels_run, numbers_run])
def test_other_tasks_are_compared_by_bootstrap(tmp_path, make):
    run = read_contents(make(tmp_path / "run", share_right=0.95, baseline_right=0.3).path)
    test = compare(run)
    gap = run.result["value"] - run.baseline.result["value"]
    assert isinstance(test, Difference) and test.is_clear and test.low < gap < test.high
    assert "paired bootstrap" in verdict(run)


def test_predictions_of_other_images_are_not_paired(tmp_path):
    folder = digits_run(tmp_path / "run")
    lines = folder.baseline.predictions.read_text().splitlines(keepends=True)
    folder.baseline.predictions.write_text("".join(lines[:-1]))
    run = read_contents(folder.path)
    assert compare(run) is None
    assert "cannot be paired" in verdict(run)


def test_sentence():
    result = {
        "metric": "accuracy",
        "value": 0.9133,
        "low": 0.8901,
        "high": 0.9324,
        "n": 360,
        "interval": "Wilson, 95 %",
    }
    assert result_sentence(result) == "Accuracy 91.3 % (89.0–93.2, 95 % Wilson interval, 360 held-out images)"
    numbers = {
        "metric": "r2",
        "value": -0.05,
        "low": -0.2,
        "high": 0.1,
        "n": 1,
        "interval": "bootstrap over images, 95 %",
    }
    assert result_sentence(numbers) == "R² −0.050 (−0.200 to 0.100, 95 % bootstrap interval, 1 held-out image)"
    assert interval_text(numbers | {"low": float("nan")}) == "no interval"


def test_model_that_learnt_nothing_is_called_so():
    result = {"metric": "accuracy", "majority": 0.5, "low": 0.45}
    assert trivial(result).endswith("the model is not clearly better than that.")
    assert "not clearly" not in trivial(result | {"low": 0.51})


def test_durations():
    assert [duration(s) for s in (0.0021, 5.25, 200, 4000)] == ["2.1 ms", "5.2 s", "3 min 20 s", "1 h 6 min"]


def test_commands_can_be_pasted(tmp_path):
    folder = digits_run(tmp_path / "my run", baseline_right=None)
    facts = repeat_facts(read_contents(folder.path))
    assert facts["exact"] == f"mirada train digits --config '{folder.config}'"
    assert facts["short"] == "mirada train digits --system vit --preset tiny-images train.steps=30 train.seed=3"
