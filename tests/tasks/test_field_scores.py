"""Scores of a field by hand and against scikit-learn; intervals over blocks; Moran's I by hand and by a double loop."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn import metrics

from mirada.data.geo.sphere import unit_vectors
from mirada.tasks.field_scores import (
    SCORES,
    block_bootstrap,
    block_draws,
    field_scores,
    interval_of,
    morans_i,
    nearest_others,
)


def test_scores_by_hand():
    scores = field_scores(np.array([1.0, 2.0, 3.0, 6.0]), np.array([2.0, 2.0, 2.0, 4.0]))
    # errors −1, 0, 1, 2; mean of the targets 3, their squares about it 4 + 1 + 0 + 9
    assert scores == pytest.approx(
        {
            "r": (6.0 / math.sqrt(14 * 3)),
            "r2": 1 - 6 / 14,
            "mae": 1.0,
            "rmse": math.sqrt(1.5),
            "mse": 1.5,
            "rae": 4 / 12,
            "rse": 6 / 50,
        }
    )
    assert tuple(scores) == SCORES


def test_scores_equal_scikit_learn_far_from_zero():
    generator = np.random.default_rng(0)
    target = (1e4 + generator.normal(size=503)).astype(np.float32)
    predicted = target + generator.normal(size=503).astype(np.float32)
    scores = field_scores(target, predicted)
    target, predicted = target.astype(float), predicted.astype(float)
    assert scores["r2"] == pytest.approx(metrics.r2_score(target, predicted), rel=1e-9)
    assert scores["mae"] == pytest.approx(metrics.mean_absolute_error(target, predicted), rel=1e-9)
    assert scores["r"] == pytest.approx(pearsonr(target, predicted)[0], rel=1e-9)


def test_scores_that_are_not_defined_are_nan():
    scores = field_scores(np.full(7, 0.1), np.full(7, 0.3))
    assert math.isnan(scores["r2"]) and math.isnan(scores["r"])
    assert scores["mae"] == pytest.approx(0.2)
    assert math.isnan(field_scores(np.zeros(3), np.ones(3))["rae"])


def test_draws_are_of_whole_blocks():
    target, predicted = np.array([1.0, 5.0, 2.0, 9.0, 4.0]), np.array([1.0, 4.0, 4.0, 9.0, 3.0])
    blocks = np.array(["a", "b", "a", "c", "b"])
    draws = block_draws(target, predicted, blocks, draws=50, seed=3)
    possible = set()
    for i in "abc":
        for j in "abc":
            for k in "abc":
                rows = np.concatenate([np.flatnonzero(blocks == block) for block in (i, j, k)])
                possible.add(round(field_scores(target[rows], predicted[rows])["mae"], 9))
    assert {round(mae, 9) for mae in draws["mae"]} <= possible
    again = block_draws(target, predicted, blocks, draws=50, seed=3)
    assert all(np.array_equal(draws[name], again[name], equal_nan=True) for name in SCORES)


def test_errors_that_blocks_share_widen_the_interval():
    generator = np.random.default_rng(0)
    blocks = np.repeat(np.arange(20), 25)
    target = generator.normal(size=500)
    predicted = target + generator.normal(size=20)[blocks]
    low, high = block_bootstrap(target, predicted, blocks)["mse"]
    row_low, row_high = block_bootstrap(target, predicted)["mse"]
    assert high - low > 2 * (row_high - row_low)
    assert low < 1 < high
    assert all(math.isnan(end) for end in block_bootstrap(target, predicted, np.zeros(500))["r2"])


def test_interval_of_blocks_holds_the_truth_about_as_often_as_it_says():
    generator, held = np.random.default_rng(0), 0
    blocks, truth = np.repeat(np.arange(40), 5), 2 / math.sqrt(math.pi)
    for seed in range(200):
        error = generator.normal(size=40)[blocks] + generator.normal(size=200)
        low, high = block_bootstrap(np.zeros(200), error, blocks, draws=200, seed=seed)["mae"]
        held += low < truth < high
    assert held / 200 == pytest.approx(0.935, abs=0.05)  # three standard errors about what 400 other runs gave


def test_interval_of_few_blocks_is_wider_by_hand():
    draws = np.arange(10_001.0)
    # 2.2622 is Student's quantile with 9 degrees of freedom: Φ(−2.2622 √(10/9)) = 0.00855.
    assert interval_of(draws, 10) == pytest.approx((85.5, 10_000 - 85.5), abs=1)
    assert interval_of(draws, 10**6) == pytest.approx((250, 9750), abs=1)
    assert all(math.isnan(end) for end in interval_of(np.array([np.nan]), 10))


def test_neighbours_are_others_even_at_the_same_place_and_across_the_antimeridian():
    lonlat = np.array([[179.9, 0.0], [-179.9, 0.0], [170.0, 0.0], *[[0.0, 0.0]] * 6])
    near = nearest_others(lonlat, 2)
    assert near[0].tolist() == [1, 2] and near[1].tolist() == [0, 2]
    for row in range(3, 9):
        assert row not in near[row] and set(near[row]) <= set(range(3, 9))


def test_morans_i_by_hand():
    # On a line with one neighbour: 0 → 1, 1 → 0, 2 → 3, 3 → 2. z = −2, −1, 1, 2: I = (2 + 2 + 2 + 2) / 10.
    lonlat = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [11.0, 0.0]])
    moran = morans_i(np.array([1.0, 2.0, 4.0, 5.0]), lonlat, num_neighbours=1)
    assert moran.value == pytest.approx(0.8) and moran.expected == pytest.approx(-1 / 3)
    # 8 of the 24 orders keep the two pairs.
    assert moran.p == pytest.approx(8 / 24, abs=0.05)


def test_morans_i_equals_a_double_loop():
    generator = np.random.default_rng(0)
    lonlat = np.stack([generator.uniform(-180, 180, 61), generator.uniform(-90, 90, 61)], axis=1)
    residuals = generator.normal(size=61)
    place, z, k = unit_vectors(lonlat), residuals - residuals.mean(), 5
    above = weight = 0.0
    for i in range(61):
        angle = np.arccos(np.clip(place @ place[i], -1, 1))
        for j in sorted(set(range(61)) - {i}, key=lambda j: angle[j])[:k]:
            above, weight = above + z[i] * z[j], weight + 1
    assert morans_i(residuals, lonlat, num_neighbours=k).value == pytest.approx(61 / weight * above / (z @ z))


def test_morans_i_tells_a_pattern_from_noise():
    generator = np.random.default_rng(0)
    lonlat = generator.uniform(0, 10, (400, 2))
    pattern, noise = np.sin(lonlat[:, 0]), generator.normal(size=400)
    found = morans_i(pattern + noise, lonlat, draws=199)
    assert found.value > 0.1 and found.p == pytest.approx(1 / 200)
    nothing = morans_i(noise, lonlat, draws=199)
    assert abs(nothing.value - nothing.expected) < 0.06 and nothing.p > 0.05
    assert math.isnan(morans_i(np.ones(9), lonlat[:9]).p)


def test_morans_i_of_noise_has_its_expectation_and_an_honest_p():
    generator = np.random.default_rng(1)
    lonlat = generator.uniform(0, 10, (30, 2))
    found = [morans_i(generator.normal(size=30), lonlat, num_neighbours=4, draws=39, seed=s) for s in range(300)]
    assert np.mean([moran.value for moran in found]) == pytest.approx(-1 / 29, abs=0.02)
    assert np.mean([moran.p <= 0.1 for moran in found]) == pytest.approx(0.1, abs=0.05)
