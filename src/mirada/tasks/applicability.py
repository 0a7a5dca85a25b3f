"""Where a map can be trusted: places that look like those the model was trained on (Meyer & Pebesma 2021).

    DI(p) = min_i ‖x_p − x_i‖ / d̄,      x = w ⊙ (features − μ)/σ,   d̄ = the mean distance between training samples

A place is inside the area of applicability if DI(p) ≤ the threshold: the largest DI of training samples, each to the
nearest sample of another fold, that is no outlier (≤ Q₃ + 1.5 (Q₃ − Q₁)). So the folds of the validation decide how
far is too far: within the area, the error is about that of the cross-validation.

A sample is the middle pixel of its layers: bands, covariates, longitude, latitude. The location is a point on the
sphere and counts as one feature, with one weight. Shape letters: N training samples, S stored ones, P places,
L layers, F = L + 1 features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from mirada.data.geo.sphere import unit_vectors
from mirada.errors import MiradaError
from mirada.tasks.layers import Predict

MOST_SAMPLES = 4000
LOCATION = 3  # of the features, the last


@dataclass(frozen=True, eq=False)
class Applicability:
    """The dissimilarity index of places, and the threshold of the area of applicability."""

    sample_SF: np.ndarray  # float32, standardised and weighted
    mean_F: np.ndarray
    factor_F: np.ndarray  # w / σ
    missing_F: np.ndarray  # what a missing value stands for: the mean, or NaN where training had no missing values
    mean_distance: float
    threshold: float

    @classmethod
    def fit(
        cls,
        samples_NL: np.ndarray,
        folds_N: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        most: int = MOST_SAMPLES,
        seed: int = 0,
    ) -> Applicability:
        """From training samples and their folds; `weights` are (L − 1,), the last for the location, or 1 each.

        Of more than `most` samples, that many are drawn and stored: the index of a map needs no more.
        """
        weight_F = _per_feature(weights, samples_NL.shape[1])
        feature_NF = _features(samples_NL)
        missing_NF = np.isnan(feature_NF)
        known_F = ~missing_NF.all(axis=0)
        mean_F, std_F = np.zeros(len(known_F)), np.zeros(len(known_F))
        mean_F[known_F], std_F[known_F] = (f(feature_NF[:, known_F], axis=0) for f in (np.nanmean, np.nanstd))
        std_F[-LOCATION:] = np.linalg.norm(std_F[-LOCATION:])  # a sphere must not become an ellipsoid
        varies_F = std_F > 1e-9 * np.maximum(np.abs(mean_F), 1e-9)
        factor_F = np.divide(weight_F, std_F, out=np.zeros_like(std_F), where=varies_F)
        if not factor_F.any():
            raise MiradaError(
                "area of applicability: no layer has both a weight and more than one value; give weights."
            )
        rows = np.arange(len(feature_NF))
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
        filled_SF = np.where(missing_NF[rows], mean_F, feature_NF[rows])
        sample_SF = ((filled_SF - mean_F) * factor_F).astype(np.float32)
        mean_distance = float(pdist(sample_SF).mean()) if len(rows) > 1 else 0.0
        if not mean_distance > 0:
            raise MiradaError("area of applicability: all training samples are the same; it needs samples that differ.")
        index_S = _nearest_of_other_folds(sample_SF, np.asarray(folds_N)[rows]) / mean_distance
        missing_F = np.where(missing_NF.any(axis=0) | (factor_F == 0), mean_F, np.nan)
        return cls(sample_SF, mean_F, factor_F, missing_F, mean_distance, _upper_whisker(index_S))

    def index(self, samples_PL: np.ndarray, *, workers: int = 1) -> np.ndarray:
        """(P,) float32 dissimilarity; NaN where a layer has no value that always had one in training.

        Of a tile (L, h, w), the samples are `tile.reshape(L, -1).T`.
        """
        feature_PF = _features(samples_PL)
        feature_PF = np.where(np.isnan(feature_PF), self.missing_F, feature_PF)
        index_P = np.full(len(feature_PF), np.nan, dtype=np.float32)
        usable_P = ~np.isnan(feature_PF).any(axis=1)
        if usable_P.any():
            point_PF = (feature_PF[usable_P] - self.mean_F) * self.factor_F
            index_P[usable_P] = self._tree.query(point_PF, workers=workers)[0] / self.mean_distance
        return index_P

    def inside(self, index: np.ndarray) -> np.ndarray:
        """Whether places of this index are in the area; those of unknown index are not."""
        return index <= self.threshold

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a safetensors or npz file."""
        numbers = np.array([self.mean_distance, self.threshold])
        return {
            "sample": self.sample_SF,
            "mean": self.mean_F,
            "factor": self.factor_F,
            "missing": self.missing_F,
            "numbers": numbers,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Applicability:
        """What `to_arrays` gave."""
        numbers = (float(number) for number in arrays["numbers"])
        return cls(arrays["sample"], arrays["mean"], arrays["factor"], arrays["missing"], *numbers)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.sample_SF)


def permutation_importance(
    predict: Predict, layers_NLHW: np.ndarray, targets_N: np.ndarray, *, repeats: int = 3, seed: int = 0
) -> np.ndarray:
    """(L − 1,) by how much the squared error grows when a layer is shuffled among rows; location is last.

    Below 0 the layer misled the model in these rows. Chips are shuffled whole, longitude and latitude together.
    """
    generator = np.random.default_rng(seed)
    num_layers = layers_NLHW.shape[1]
    error = np.square(predict(layers_NLHW) - targets_N).mean()
    importance = []
    for layers in [*([layer] for layer in range(num_layers - 2)), [num_layers - 2, num_layers - 1]]:
        grown = 0.0
        for _ in range(repeats):
            shuffled_NLHW = layers_NLHW.copy()
            shuffled_NLHW[:, layers] = layers_NLHW[generator.permutation(len(layers_NLHW))][:, layers]
            grown += np.square(predict(shuffled_NLHW) - targets_N).mean() - error
        importance.append(grown / repeats)
    return np.array(importance)


def _features(samples_NL: np.ndarray) -> np.ndarray:
    samples_NL = np.asarray(samples_NL, dtype=np.float64)
    return np.concatenate([samples_NL[:, :-2], unit_vectors(samples_NL[:, -2:])], axis=1)


def _per_feature(weights: np.ndarray | None, num_layers: int) -> np.ndarray:
    """(F,) from one weight per band and covariate and one for the location."""
    if weights is None:
        return np.ones(num_layers + 1)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (num_layers - 1,) or not (weights >= 0).all():
        raise MiradaError(
            f"weights of shape {weights.shape}: must be {num_layers - 1} numbers from 0 on, one for each band and "
            "covariate and the last for the location."
        )
    return np.concatenate([weights[:-1], np.repeat(weights[-1:], LOCATION)])


def _nearest_of_other_folds(sample_SF: np.ndarray, folds_S: np.ndarray) -> np.ndarray:
    distance_S = np.empty(len(sample_SF))
    folds = np.unique(folds_S)
    if len(folds) < 2:
        raise MiradaError("area of applicability: all training samples are in one fold; its threshold needs two.")
    for fold in folds:
        own_S = folds_S == fold
        distance_S[own_S] = cKDTree(sample_SF[~own_S]).query(sample_SF[own_S])[0]
    return distance_S


def _upper_whisker(index_S: np.ndarray) -> float:
    first, third = np.percentile(index_S, [25, 75])
    return float(index_S[index_S <= third + 1.5 * (third - first)].max())
