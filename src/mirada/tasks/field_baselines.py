"""What a model of a field must beat: the nearest plots, and the two kinds of trees that ecologists use.

Each takes the layers (N, L, H, W) that the models take and sees their middle pixel: bands, covariates, longitude,
latitude; the nearest plots are found by location alone. They are made as strong as they get: settings that matter are
chosen by a cross-validation of the training rows, which leaves out whole blocks if blocks are given, as the test will.
Shape letters: N rows, L layers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mirada.data.geo.sphere import unit_vectors
from mirada.tasks.layers import Predict, middle_pixel

NEIGHBOURS = (1, 2, 3, 5, 8, 12, 20, 35, 60)
INNER_FOLDS = 5
SCORING = "neg_mean_squared_error"
NUM_TREES = 300
TREES = [  # of gradient boosting
    {"learning_rate": [0.1], "max_leaf_nodes": [31], "max_iter": [100]},
    {"learning_rate": [0.05], "max_leaf_nodes": [15], "max_iter": [150]},
]


def fit_knn(
    layers_NLHW: np.ndarray,
    targets_N: np.ndarray,
    *,
    blocks_N: np.ndarray | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> Predict:
    """The mean of the k nearest plots on the sphere, weighed by 1/distance or alike; k and the weighing are chosen."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsRegressor

    place_N3 = unit_vectors(middle_pixel(layers_NLHW)[:, -2:])
    most = len(place_N3) * (INNER_FOLDS - 1) // INNER_FOLDS
    choices = {"n_neighbors": [k for k in NEIGHBOURS if k <= most], "weights": ["uniform", "distance"]}
    folds = _inner_folds(blocks_N, seed)
    search = GridSearchCV(KNeighborsRegressor(), choices, scoring=SCORING, cv=folds, n_jobs=n_jobs)
    search.fit(place_N3, targets_N, groups=blocks_N)
    return lambda layers: search.predict(unit_vectors(middle_pixel(layers)[:, -2:]))


def fit_random_forest(
    layers_NLHW: np.ndarray,
    targets_N: np.ndarray,
    *,
    blocks_N: np.ndarray | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> Predict:
    """A random forest; missing values are the median of the training rows.

    Each branch chooses from a third of the layers, but from three at least: where there are few, all matter.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    num_layers = layers_NLHW.shape[1]
    tried = min(max(3, num_layers // 3), num_layers)
    forest = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True),
        RandomForestRegressor(NUM_TREES, max_features=tried, min_samples_leaf=2, n_jobs=n_jobs, random_state=seed),
    )
    forest.fit(middle_pixel(layers_NLHW), targets_N)
    return lambda layers: forest.predict(middle_pixel(layers))


def fit_gradient_boosting(
    layers_NLHW: np.ndarray,
    targets_N: np.ndarray,
    *,
    blocks_N: np.ndarray | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> Predict:
    """Histogram gradient boosting, with a branch for missing values; many small or fewer large trees are chosen."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV
    from threadpoolctl import threadpool_limits

    feature_NL = middle_pixel(layers_NLHW)
    known_L = ~np.isnan(feature_NL).all(axis=0)  # it refuses a layer without a value
    boosted = GridSearchCV(
        HistGradientBoostingRegressor(random_state=seed), TREES, scoring=SCORING, cv=_inner_folds(blocks_N, seed)
    )
    with threadpool_limits(n_jobs, user_api="openmp"):  # its only way to say how many
        boosted.fit(feature_NL[:, known_L], targets_N, groups=blocks_N)
    return lambda layers: boosted.predict(middle_pixel(layers)[:, known_L])


def _inner_folds(blocks_N: np.ndarray | None, seed: int) -> object:
    from sklearn.model_selection import GroupKFold, KFold

    if blocks_N is not None and len(np.unique(blocks_N)) >= INNER_FOLDS:
        return GroupKFold(INNER_FOLDS)
    return KFold(INNER_FOLDS, shuffle=True, random_state=seed)


BASELINES: dict[str, Callable[..., Predict]] = {
    "knn": fit_knn,
    "random_forest": fit_random_forest,
    "gradient_boosting": fit_gradient_boosting,
}
TITLES = {
    "knn": "nearest plots (kNN on coordinates)",
    "random_forest": "random forest",
    "gradient_boosting": "histogram gradient boosting",
}
