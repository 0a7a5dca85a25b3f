"""Scores equal hand cases and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics
from torch.nn import functional as F

from mirada.tasks.intervals import bootstrap, wilson
from mirada.tasks.multi_label import MultiLabel
from mirada.tasks.regression import Regression
from mirada.tasks.scores import calibration
from mirada.tasks.single_label import SingleLabel, inverse_frequency

N, C = 211, 7
NAMES = [f"class {c}" for c in range(C)]


def test_wilson_interval_by_hand():
    low, high = wilson(9, 10)
    assert (low, high) == pytest.approx((0.59585, 0.98212), abs=1e-5)
    low, high = wilson(0, 10)
    assert (low, high) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_bootstrap_covers_the_mean_of_a_sample():
    values = np.random.default_rng(1).normal(3.0, 1.0, 401)
    low, high = bootstrap(lambda rows: values[rows].mean(), len(values))
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(401), rel=0.15)


def test_single_label_equals_scikit_learn():
    logits, targets = torch.randn(N, C) * 2, torch.randint(0, C, (N,))
    logits[torch.arange(N), targets] += 1.5
    result = SingleLabel(NAMES).result(logits, targets)
    predicted = logits.argmax(1)
    assert result["value"] == pytest.approx(metrics.accuracy_score(targets, predicted))
    assert result["loss"] == pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-5)
    assert result["confusion"] == metrics.confusion_matrix(targets, predicted).tolist()
    precision, recall, f1, support = metrics.precision_recall_fscore_support(targets, predicted)
    for row, *expected in zip(result["per_class"], precision, recall, f1, support, strict=True):
        assert [row["precision"], row["recall"], row["f1"], row["support"]] == pytest.approx(expected)
    assert result["macro_f1"] == pytest.approx(f1.mean())
    assert result["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(targets, predicted))
    assert result["top5"] == pytest.approx(metrics.top_k_accuracy_score(targets, logits, k=5))
    assert result["majority"] == pytest.approx(np.bincount(targets).max() / N)
    assert result["low"] < result["value"] < result["high"]


def test_classes_that_do_not_occur_are_no_reason_for_nan():
    logits = torch.eye(3)[torch.tensor([0, 0, 1, 1])] * 9.0
    result = SingleLabel(["a", "b", "never"]).result(logits, torch.tensor([0, 0, 1, 0]))
    assert result["per_class"][2] == {"name": "never", "precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert result["macro_recall"] == pytest.approx((2 / 3 + 1) / 2)


def test_calibration_by_hand():
    bins, error = calibration(np.array([0.95, 0.95, 0.15]), np.array([True, False, False]))
    assert [row["count"] for row in bins] == [1, 2]
    assert error == pytest.approx(2 / 3 * 0.45 + 1 / 3 * 0.15)


def test_loss_takes_class_numbers_and_shares_alike():
    task = SingleLabel(NAMES, label_smoothing=0.1)
    logits, targets = torch.randn(N, C), torch.randint(0, C, (N,))
    shares = F.one_hot(targets, C).float()
    torch.testing.assert_close(task.loss(logits, targets), task.loss(logits, shares))


def test_class_weights_balance_the_loss():
    counts = np.array([90, 10, 0])
    weights = inverse_frequency(counts)
    assert weights.tolist() == pytest.approx([100 / 180, 5.0, 0.0])
    assert (weights.numpy() * counts).sum() == pytest.approx(100)


def test_answers_name_the_class_and_its_probability():
    answer = SingleLabel(["cat", "dog"]).answers(torch.tensor([[0.0, np.log(3.0)]]))[0]
    assert answer == {"predicted": "dog", "confidence": 0.75, "p_cat": 0.25, "p_dog": 0.75}


def test_multi_label_equals_scikit_learn():
    logits, targets = torch.randn(N, C), (torch.rand(N, C) < 0.3).float()
    result = MultiLabel(NAMES).result(logits, targets)
    predicted = (logits > 0).int()
    assert result["value"] == pytest.approx(metrics.f1_score(targets, predicted, average="micro"))
    assert result["macro_f1"] == pytest.approx(metrics.f1_score(targets, predicted, average="macro"))
    assert result["exact_match"] == pytest.approx(metrics.accuracy_score(targets.int(), predicted))
    assert result["mean_average_precision"] == pytest.approx(metrics.average_precision_score(targets, logits.sigmoid()))
    assert result["low"] < result["value"] < result["high"]


def test_regression_scales_back_and_equals_scikit_learn():
    targets = torch.randn(N, 2) * torch.tensor([5.0, 0.1]) + torch.tensor([100.0, -3.0])
    task = Regression(["height", "weight"], targets.mean(0).tolist(), targets.std(0, unbiased=False).tolist())
    outputs = (targets - task.mean) / task.std + 0.3 * torch.randn(N, 2)
    result = task.result(outputs, targets)
    predicted = task.values(outputs)
    assert result["mae"] == pytest.approx(metrics.mean_absolute_error(targets, predicted), rel=1e-5)
    for t, row in enumerate(result["per_target"]):
        assert row["r2"] == pytest.approx(metrics.r2_score(targets[:, t], predicted[:, t]), rel=1e-4)
    assert task.answers(torch.zeros(1, 2))[0]["predicted_height"] == pytest.approx(
        targets[:, 0].mean().item(), rel=1e-5
    )
