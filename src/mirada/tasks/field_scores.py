"""Numbers to judge predictions of a field by, their intervals over blocks, and whether residuals still have a pattern.

    r² = 1 − Σe²/Σ(y − ȳ)²    MAE = Σ|e|/N    RAE = Σ|e|/Σ|y|    RSE = Σe²/Σy²        e = y − ŷ

RAE and RSE are those of Guo et al. 2025, relative to the size of the targets and not to their variance: a constant
prediction scores well by them where targets are far from zero. All are functions of a few sums over rows, so a
bootstrap over blocks sums within blocks once. Shape letters: N rows, G blocks, S sums, R draws, K neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree
from scipy.special import ndtr, stdtrit

from mirada.data.geo.sphere import unit_vectors

SCORES = ("r", "r2", "mae", "rmse", "mse", "rae", "rse")


def field_scores(target_N: np.ndarray, predicted_N: np.ndarray) -> dict[str, float]:
    """All of SCORES by name; NaN where a score is not defined, such as r² where the target does not vary."""
    scores = _scores(_terms(target_N, predicted_N).sum(0, keepdims=True))
    return {name: float(values[0]) for name, values in scores.items()}


def block_draws(
    target_N: np.ndarray,
    predicted_N: np.ndarray,
    blocks_N: np.ndarray | None = None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """(R,) of each score, over whole blocks drawn with replacement; without blocks, each row is one.

    Neighbours share their errors, so rows drawn one by one would promise too much. The same seed draws the same
    blocks: the difference of two models is that of their draws, one by one.
    """
    terms_NS = _terms(target_N, predicted_N)
    _, block_N = np.unique(np.arange(len(terms_NS)) if blocks_N is None else blocks_N, return_inverse=True)
    sums_GS = np.stack([np.bincount(block_N, term_N) for term_N in terms_NS.T], axis=1)
    num_blocks = len(sums_GS)
    generator = np.random.default_rng(seed)
    drawn = [np.bincount(generator.integers(0, num_blocks, num_blocks), minlength=num_blocks) for _ in range(draws)]
    return _scores(np.stack([times_G @ sums_GS for times_G in drawn]))


def block_bootstrap(
    target_N: np.ndarray,
    predicted_N: np.ndarray,
    blocks_N: np.ndarray | None = None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """The 95 % percentile interval of each score over `block_draws`; NaN where there is a single block."""
    if blocks_N is not None and len(np.unique(blocks_N)) < 2:
        return dict.fromkeys(SCORES, (float("nan"), float("nan")))
    num_blocks = len(target_N) if blocks_N is None else len(np.unique(blocks_N))
    found = block_draws(target_N, predicted_N, blocks_N, draws=draws, seed=seed)
    return {name: interval_of(values_R, num_blocks) for name, values_R in found.items()}


def interval_of(values_R: np.ndarray, num_blocks: int) -> tuple[float, float]:
    """The percentiles Φ(∓ t √(G/(G − 1))) of the draws that are defined, t the 97.5 % quantile of Student's with G − 1.

    Draws of few blocks vary too little; this widens them as a t-interval would (Hesterberg 2015). Few blocks remain
    few: in a simulation these intervals held the true MAE in 94 % of cases with 40 blocks and in 91 % with 10, the
    true MSE in 92 % and 87 %.
    """
    values_R = values_R[~np.isnan(values_R)]
    if not len(values_R):
        return float("nan"), float("nan")
    tail = ndtr(-stdtrit(num_blocks - 1, 0.975) * np.sqrt(num_blocks / (num_blocks - 1)))
    low, high = np.percentile(values_R, [100 * tail, 100 * (1 - tail)])
    return float(low), float(high)


def _terms(target_N: np.ndarray, predicted_N: np.ndarray) -> np.ndarray:
    """(N, S) what is summed. Centred at the mean of the targets, so that variances keep their digits."""
    y_N, p_N = np.asarray(target_N, dtype=np.float64), np.asarray(predicted_N, dtype=np.float64)
    error_N, v_N, q_N = y_N - p_N, y_N - y_N.mean(), p_N - y_N.mean()
    terms = (np.ones_like(y_N), v_N, q_N, v_N**2, q_N**2, v_N * q_N, np.abs(error_N), error_N**2, np.abs(y_N), y_N**2)
    return np.stack(terms, axis=1)


def _scores(sums_RS: np.ndarray) -> dict[str, np.ndarray]:
    num, v, q, vv, qq, vq, absolute, squared, size, size_squared = sums_RS.T
    # Targets that do not vary have a variance of rounding errors, not of 0.
    noise = 1e-24 * size_squared
    target_variance, predicted_variance = (np.where(s > noise, s, 0) for s in (vv - v**2 / num, qq - q**2 / num))
    mse = squared / num
    return {
        "r": _ratio(vq - v * q / num, np.sqrt(target_variance * predicted_variance)),
        "r2": 1 - _ratio(squared, target_variance),
        "mae": absolute / num,
        "rmse": np.sqrt(mse),
        "mse": mse,
        "rae": _ratio(absolute, size),
        "rse": _ratio(squared, size_squared),
    }


def _ratio(above_R: np.ndarray, below_R: np.ndarray) -> np.ndarray:
    """NaN instead of a division by zero."""
    return np.divide(above_R, below_R, out=np.full_like(above_R, np.nan), where=below_R > 0)


@dataclass(frozen=True)
class Moran:
    """Moran's I, what it would be without a pattern, and the share of random orders that reach it."""

    value: float
    expected: float
    p: float
    num_neighbours: int


def morans_i(
    residuals_N: np.ndarray, lonlat_N2: np.ndarray, *, num_neighbours: int = 8, draws: int = 999, seed: int = 0
) -> Moran:
    """I = Σ_i z_i z̄_i / Σ_i z_i², z̄_i the mean over the K nearest on the sphere, z = e − ē; expected −1/(N − 1).

    p = (1 + number of random orders with an I as large) / (1 + draws): small if neighbours err alike, which says that
    something that varies over space is still missing from the model.
    """
    z_N = np.asarray(residuals_N, dtype=np.float64) - np.mean(residuals_N, dtype=np.float64)
    num, num_neighbours = len(z_N), min(num_neighbours, len(z_N) - 1)
    near_NK = nearest_others(lonlat_N2, num_neighbours)
    starts = np.arange(num + 1) * num_neighbours
    weights_NN = csr_array((np.full(near_NK.size, 1 / num_neighbours), near_NK.ravel(), starts), shape=(num, num))
    total = z_N @ z_N
    if not total > 0:
        return Moran(float("nan"), -1 / (num - 1), float("nan"), num_neighbours)
    value = z_N @ (weights_NN @ z_N) / total
    generator = np.random.default_rng(seed)
    shuffled = (generator.permutation(z_N) for _ in range(draws))
    # As large but for the order of additions: ties are common where residuals are few.
    reached = sum(z @ (weights_NN @ z) / total >= value - 1e-12 for z in shuffled)
    return Moran(float(value), -1 / (num - 1), (1 + int(reached)) / (1 + draws), num_neighbours)


def nearest_others(lonlat_N2: np.ndarray, num_neighbours: int) -> np.ndarray:
    """(N, K) the rows nearest to each row on the sphere, without itself; those at the same place are neighbours."""
    place_N3 = unit_vectors(lonlat_N2)
    _, near_NK = cKDTree(place_N3).query(place_N3, num_neighbours + 1)
    other_NK = near_NK != np.arange(len(place_N3))[:, None]
    other_NK[other_NK.all(axis=1), -1] = False  # so many share its place that a row is not among its own nearest
    return near_NK[other_NK].reshape(len(place_N3), num_neighbours)
