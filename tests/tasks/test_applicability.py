"""The dissimilarity index by hand and by brute force, its threshold, and what it says of places unlike the training."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy.spatial.distance import cdist

from mirada.data.geo.sphere import unit_vectors
from mirada.errors import MiradaError
from mirada.tasks.applicability import Applicability, permutation_importance

ONLY_LAYERS = [1.0, 1.0, 0.0]  # nothing for the location


def samples(num=97, seed=0):
    generator = np.random.default_rng(seed)
    lonlat = np.stack([generator.uniform(-70, -40, num), generator.uniform(-30, 5, num)], axis=1)
    return np.concatenate([generator.normal([5, -300], [2, 70], (num, 2)), lonlat], axis=1).astype(np.float32)


def test_index_and_threshold_by_hand():
    training = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
    fitted = Applicability.fit(training, np.array([0, 0, 1, 1]), [1.0, 0.0])
    mean_distance = (1 + 2 + 3 + 1 + 2 + 1) / 6
    index = fitted.index(np.array([[0.0, 50, 50], [0.5, 0, 0], [10.0, 0, 0]]))
    assert index.tolist() == pytest.approx([0.0, 0.5 / mean_distance, 7 / mean_distance], abs=1e-6)
    assert fitted.threshold == pytest.approx(2 / mean_distance)  # 0 → 2, 1 → 2, 2 → 1, 3 → 1
    assert fitted.inside(index).tolist() == [True, True, False]
    assert not fitted.inside(np.array([np.nan]))[0]


def test_outliers_do_not_set_the_threshold():
    band = np.concatenate([np.linspace(0, 1, 40), [50.0]])
    training = np.stack([band, np.zeros(41), np.zeros(41)], axis=1)
    fitted = Applicability.fit(training, np.arange(41) % 2, [1.0, 0.0])
    assert fitted.threshold < fitted.index(np.array([[2.0, 0, 0]]))[0]


def test_index_equals_brute_force_with_weights():
    training, places, weights = samples(), samples(53, seed=1), np.array([3.0, 0.5, 2.0])
    fitted = Applicability.fit(training, np.arange(97) % 4, weights)
    sphere, elsewhere = unit_vectors(training[:, 2:]), unit_vectors(places[:, 2:])
    spread = np.sqrt(sphere.var(0).sum())
    x, p = (
        np.concatenate(
            [weights[:2] * (rows[:, :2] - training[:, :2].mean(0)) / training[:, :2].std(0), 2.0 * vectors / spread],
            axis=1,
        )
        for rows, vectors in ((training, sphere), (places, elsewhere))
    )
    among = cdist(x, x)
    mean_distance = among[~np.eye(97, dtype=bool)].mean()
    np.testing.assert_allclose(fitted.index(places), cdist(p, x).min(1) / mean_distance, rtol=1e-4)
    fold = np.arange(97) % 4
    own = np.where(fold[:, None] == fold, np.inf, among).min(1) / mean_distance
    first, third = np.percentile(own, [25, 75])
    assert fitted.threshold == pytest.approx(own[own <= third + 1.5 * (third - first)].max(), rel=1e-5)


def test_location_counts_alike_in_all_directions_and_across_the_antimeridian():
    lonlat = np.array([[179.0, 0.0], [-179.0, 0.0], [179.0, 2.0], [-179.0, 2.0], [180.0, 1.0]])
    training = np.concatenate([np.zeros((5, 1)), lonlat], axis=1)
    fitted = Applicability.fit(training, np.arange(5), [0.0, 1.0])
    east, north = fitted.index(np.array([[0, -178.0, 0.0], [0, 179.0, 3.0]]))
    assert east == pytest.approx(north, rel=1e-2)


def test_blocked_folds_make_the_area_larger_than_random_ones():
    training = samples(400)
    training[:, 0] = training[:, 2]  # a gradient from west to east
    blocked = np.digitize(training[:, 2], [-62, -54, -46])
    random = np.random.default_rng(0).permutation(blocked)
    thresholds = [Applicability.fit(training, folds, ONLY_LAYERS).threshold for folds in (blocked, random)]
    assert thresholds[0] > 1.2 * thresholds[1]


def test_missing_values():
    training = samples()
    training[:9, 1] = np.nan
    fitted = Applicability.fit(training, np.arange(97) % 5, ONLY_LAYERS)
    place = samples(3, seed=1)
    place[0, 0] = place[1, 1] = np.nan
    index = fitted.index(place)
    assert np.isnan(index[0]), "the first layer had no missing values in training"
    mean = place[1:2].copy()
    mean[0, 1] = np.nanmean(training[:, 1])
    assert index[1] == pytest.approx(fitted.index(mean)[0], rel=1e-5)
    assert index[2] >= 0


def test_layers_without_weight_may_be_missing():
    fitted = Applicability.fit(samples(), np.arange(97) % 5, [1.0, 0.0, 0.0])
    place = samples(2, seed=1)
    place[0, 1] = place[1, 2] = np.nan
    assert np.isfinite(fitted.index(place)).all()


def test_constant_and_empty_layers_say_nothing():
    training = samples()
    training[:, 0], training[:, 1] = 7.0, np.nan
    fitted = Applicability.fit(training, np.arange(97) % 5, [1.0, 1.0, 1.0])
    place = samples(2, seed=1)
    moved = place.copy()
    moved[:, :2] += 100
    np.testing.assert_array_equal(fitted.index(place), fitted.index(moved))


def test_many_samples_are_drawn_with_a_seed_and_kept_in_a_file(tmp_path):
    training, folds = samples(900), np.arange(900) % 6
    fitted = Applicability.fit(training, folds, most=200, seed=5)
    assert len(fitted.sample_SF) == 200
    again = Applicability.fit(training, folds, most=200, seed=5)
    other = Applicability.fit(training, folds, most=200, seed=6)
    assert np.array_equal(fitted.sample_SF, again.sample_SF) and not np.array_equal(fitted.sample_SF, other.sample_SF)
    whole, places = Applicability.fit(training, folds), samples(500, seed=1)
    shares = [area.inside(area.index(places)).mean() for area in (fitted, whole)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05) and 0.8 < shares[1] < 1
    save_file(fitted.to_arrays(), tmp_path / "applicability.safetensors")
    loaded = Applicability.from_arrays(load_file(tmp_path / "applicability.safetensors"))
    tile = samples(35, seed=2).T.reshape(4, 5, 7)
    np.testing.assert_array_equal(loaded.index(tile.reshape(4, -1).T), fitted.index(tile.reshape(4, -1).T))
    assert loaded.threshold == fitted.threshold


def test_importance_is_of_layers_that_the_model_uses():
    generator = np.random.default_rng(0)
    layers = generator.normal(size=(300, 5, 3, 3)).astype(np.float32)

    def predict(layers):
        return 2 * layers[:, 1, 1, 1] + layers[:, 3, 1, 1] * layers[:, 4, 1, 1]

    before = layers.copy()
    importance = permutation_importance(predict, layers, predict(layers))
    assert importance[[0, 2]].tolist() == [0, 0]
    assert importance[1] == pytest.approx(2 * 4, rel=0.25)  # twice the variance of 2 x
    assert importance[3] == pytest.approx(2, rel=0.4)
    assert np.array_equal(layers, before) and len(importance) == 4
    misled = permutation_importance(predict, layers, -predict(layers))
    assert misled[1] < 0 and misled[[0, 2]].tolist() == [0, 0]


def test_unfit_training_samples_are_named():
    with pytest.raises(MiradaError, match=r"weights of shape \(4,\): must be 3 numbers"):
        Applicability.fit(samples(), np.arange(97) % 5, np.ones(4))
    with pytest.raises(MiradaError, match="in one fold"):
        Applicability.fit(samples(), np.zeros(97))
    with pytest.raises(MiradaError, match="no layer has both a weight and more than one value"):
        Applicability.fit(np.ones((9, 3)), np.arange(9), [1.0, 0.0])
