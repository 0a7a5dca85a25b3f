"""Baselines see what they should, bear missing values, and reach on real data what they are known to reach."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from mirada.tasks.field_baselines import BASELINES, TITLES, fit_gradient_boosting, fit_knn, fit_random_forest
from mirada.tasks.field_scores import field_scores
from mirada.tasks.layers import middle_pixel

N = 211


def plots(chip=1):
    """A band and a covariate at random places; only the middle of the chips tells."""
    generator = np.random.default_rng(0)
    layers = generator.normal(size=(N, 4, chip, chip)).astype(np.float32)
    layers[:, 2] = generator.uniform(170, 190, N).astype(np.float32)[:, None, None]
    layers[:, 2][layers[:, 2] > 180] -= 360
    layers[:, 3] = generator.uniform(-50, -30, N).astype(np.float32)[:, None, None]
    return layers


def test_middle_pixel_is_the_one_of_the_plot():
    layers = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    np.testing.assert_array_equal(middle_pixel(layers), layers[:, :, 2, 3])


@pytest.mark.parametrize("fit", [fit_random_forest, fit_gradient_boosting])
def test_trees_learn_from_the_middle_pixel_and_bear_missing_values(fit):
    layers = plots(chip=3)
    targets = 3 * layers[:, 0, 1, 1] + layers[:, 1, 1, 1]
    layers[::7, 1] = np.nan
    predict = fit(layers[:150], targets[:150])
    assert field_scores(targets[150:], predict(layers[150:]))["r2"] > 0.75
    layers[150:, 1] = np.nan
    assert np.isfinite(predict(layers[150:])).all()


def test_missing_values_are_the_median_of_the_training_rows_to_the_forest():
    layers, median = plots(), plots()
    targets = layers[:, 1, 0, 0]
    layers[150:, 1] = np.nan
    median[150:, 1] = np.median(layers[:150, 1])
    predict = fit_random_forest(layers[:150], targets[:150])
    np.testing.assert_array_equal(predict(layers[150:]), predict(median[150:]))


def test_a_layer_that_is_always_missing_is_no_reason_to_fail():
    layers = plots()
    layers[:, 1] = np.nan
    for fit in BASELINES.values():
        assert np.isfinite(fit(layers, layers[:, 0, 0, 0])(layers)).all()


def test_nearest_plots_are_near_on_the_sphere_and_nothing_else_counts():
    layers = plots()
    targets = np.hypot(layers[:, 2, 0, 0] % 360 - 180, layers[:, 3, 0, 0] + 40)  # smooth over the antimeridian
    predict = fit_knn(layers[:150], targets[:150])
    assert field_scores(targets[150:], predict(layers[150:]))["r2"] > 0.8
    other = layers[150:].copy()
    other[:, :2] = 1e6
    np.testing.assert_array_equal(predict(other), predict(layers[150:]))


def test_number_of_neighbours_is_chosen_for_the_blocks_to_come():
    """Noise that each block shares: rows nearby know it, so few neighbours do best at random, many over blocks."""
    generator = np.random.default_rng(0)
    layers = plots()
    block = (layers[:, 2, 0, 0] % 360 // 4).astype(int) * 100 + (layers[:, 3, 0, 0] // 4).astype(int)
    targets = generator.normal(size=20_000)[block % 20_000]
    near, far = fit_knn(layers, targets), fit_knn(layers, targets, blocks_N=block)
    layers[:, 3] += 0.5  # at the plots themselves all are the same
    assert far(layers).std() < 0.5 * near(layers).std()


def test_same_seed_same_forest_and_every_baseline_has_a_title():
    layers = plots()
    forests = [fit_random_forest(layers[:50], layers[:50, 0, 0, 0], seed=seed)(layers) for seed in (3, 3, 4)]
    assert np.array_equal(forests[0], forests[1]) and not np.array_equal(forests[0], forests[2])
    assert BASELINES.keys() == TITLES.keys()


def real_plots(path, covariates, lon, lat, target, block):
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    columns = [name for name in table.dtype.names if covariates(name)]
    layers = np.stack([table[name] for name in (*columns, lon, lat)], axis=1).astype(np.float32)
    x, y = (np.floor(table[name] / size).astype(int) for name, size in block)
    return layers[:, :, None, None], table[target].astype(float), x * 10_000 + y


def r2_at_random(fit, layers, targets, _):
    return _r2_of_folds(fit, layers, targets, KFold(5, shuffle=True, random_state=0), None)


def r2_of_blocks(fit, layers, targets, blocks):
    return _r2_of_folds(fit, layers, targets, GroupKFold(5, shuffle=True, random_state=0), blocks)


def _r2_of_folds(fit, layers, targets, folds, blocks):
    predicted = np.empty(len(targets))
    for train, test in folds.split(layers, targets, blocks):
        inner = None if blocks is None else blocks[train]
        predicted[test] = fit(layers[train], targets[train], blocks_N=inner)(layers[test])
    return field_scores(targets, predicted)["r2"]


# What these baselines reached before, with settings of the day; those of blocks depend on which go together.
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "random", "blocked"),
    [("knn", 0.94, 0.88), ("random_forest", 0.93, 0.88), ("gradient_boosting", 0.95, 0.91)],
)
def test_air_temperature(name, random, blocked, real_data):
    path = real_data("geo/air_temperature.csv")
    data = real_plots(path, "meanP".__eq__, "Lon", "Lat", "meanT", (("Lon", 10), ("Lat", 10)))
    assert r2_at_random(BASELINES[name], *data) == pytest.approx(random, abs=0.03)
    assert r2_of_blocks(BASELINES[name], *data) == pytest.approx(blocked, abs=0.04)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "random", "blocked"),
    [("knn", 0.56, 0.33), ("random_forest", 0.67, 0.50), ("gradient_boosting", 0.66, 0.46)],
)
def test_plant_richness_of_south_america(name, random, blocked, real_data):
    path = real_data("geo/south_america_plant_richness.csv")
    block = (("longitude", 3), ("latitude", 3))
    data = real_plots(path, lambda c: c[:3] == "bio" or c == "elev", "longitude", "latitude", "richness", block)
    assert r2_at_random(BASELINES[name], *data) == pytest.approx(random, abs=0.05)
    assert r2_of_blocks(BASELINES[name], *data) == pytest.approx(blocked, abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "random", "blocked"),
    [("knn", 0.41, -0.43), ("random_forest", 0.43, 0.26), ("gradient_boosting", 0.43, 0.24)],
)
def test_plant_richness_of_new_zealand(name, random, blocked, real_data):
    path = real_data("geo/nz_plant_richness.csv")
    given = {"longitude", "latitude", "x", "y", "richness"}
    block = (("x", 1e5), ("y", 1e5))
    data = real_plots(path, lambda c: c not in given, "longitude", "latitude", "richness", block)
    rows = np.random.default_rng(0).permutation(len(data[1]))[:6000]
    layers, targets, blocks = (part[rows] for part in data)
    if name != "random_forest":  # whose folds take a minute each
        assert r2_at_random(BASELINES[name], layers, targets, blocks) == pytest.approx(random, abs=0.05)
    # Neighbours chosen over blocks are far better than those of then.
    assert r2_of_blocks(BASELINES[name], layers, targets, blocks) > blocked - 0.05
