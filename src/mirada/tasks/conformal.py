"""Intervals that hold what they promise on places the model has not seen, whatever the model.

    score of row i of block g   s_gi = |y − ŷ| / scale
    q                           the `coverage` quantile of  Σ_g Σ_i δ(s_gi) / ((G + 1) n_g)  +  δ(∞) / (G + 1)
    interval                    ŷ ± q · scale

The residuals must be of held-out blocks. Errors within a block go together, so N rows in G blocks say much less than
N rows do, and the usual split-conformal quantile, which takes rows for exchangeable, is decided by the few blocks with
most plots and promises too much. This is the hierarchical quantile of Lee, Barber & Willett (2023, "Distribution-free
inference with hierarchical data"): only blocks are taken for exchangeable, each counts the same whatever its size, and
the block to come counts as one more whose scores may be anything. It covers a row of a new block with probability
`coverage` at least and coverage + 2/(G + 1) at most. Of the alternatives (Dunn, Wasserman & Ramdas 2022), pooling the
blocks' distributions without the term at infinity has no guarantee for few blocks, and one row per block wastes most
rows or depends on the draw. With one row per block it is plain split conformal.

The guarantee is for a model that saw none of the G blocks. Residuals out of cross-validation come from models that
differ a little from each other and from the final one, which has seen more: expect a little more than promised.
Shape letters: N rows, G blocks.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from mirada.errors import MiradaError


def block_quantile(scores_N: np.ndarray, blocks_N: np.ndarray, coverage: float) -> float:
    """The quantile above; infinite if there are fewer than coverage / (1 − coverage) blocks."""
    _, block_N, size_G = np.unique(blocks_N, return_inverse=True, return_counts=True)
    order = np.argsort(scores_N, kind="stable")
    mass_N = np.cumsum(1 / ((len(size_G) + 1) * size_G[block_N[order]]))
    reached = int(np.searchsorted(mass_N, coverage - 1e-9))  # sums of 1/n_g are short of whole numbers by rounding
    return float(scores_N[order[reached]]) if reached < len(order) else math.inf


@dataclass(frozen=True)
class Conformal:
    """How many scales wide the interval is on each side; `normalised` says whether scales are given."""

    coverage: float
    quantile: float
    num_blocks: int
    normalised: bool

    @classmethod
    def fit(
        cls,
        residuals_N: np.ndarray,
        scales_N: np.ndarray | None,
        blocks_N: np.ndarray,
        coverage: float = 0.9,
    ) -> Conformal:
        """From residuals of held-out blocks, divided by the head's own scale or, without scales, as they are."""
        if not 0 < coverage < 1:
            raise MiradaError(f"coverage={coverage}: must be between 0 and 1, such as 0.9.")
        num_blocks = len(np.unique(blocks_N))
        quantile = block_quantile(_scores(residuals_N, scales_N), blocks_N, coverage)
        if math.isinf(quantile):
            needed = math.ceil(coverage / (1 - coverage) - 1e-9)
            raise MiradaError(
                f"{num_blocks} held-out blocks are too few for intervals that cover {coverage:.0%}, which need "
                f"{needed}; use smaller blocks or a lower coverage."
            )
        return cls(coverage, quantile, num_blocks, scales_N is not None)

    def interval(
        self, values: np.ndarray, scales: np.ndarray | None = None, *, lowest: float = -math.inf
    ) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of any shape; `lowest` is the smallest value possible, below which there is nothing to cover."""
        assert (scales is not None) == self.normalised
        half_width = self.quantile * (1.0 if scales is None else scales)
        return np.maximum(values - half_width, lowest), np.maximum(values + half_width, lowest)

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict) -> Conformal:
        return cls(**content)


@dataclass(frozen=True)
class MeasuredCoverage:
    """What intervals calibrated on other folds covered: of all rows, and the mean over blocks, which is promised."""

    promised: float
    rows: float
    blocks: float
    per_fold: dict[str, float]  # of the rows of each fold
    half_width: float  # mean, in the target's unit

    def to_dict(self) -> dict:
        return asdict(self)


def leave_one_fold_out_coverage(
    residuals_N: np.ndarray,
    scales_N: np.ndarray | None,
    folds_N: np.ndarray,
    coverage: float = 0.9,
    *,
    blocks_N: np.ndarray | None = None,
) -> MeasuredCoverage:
    """Calibrate on the residuals of all folds but one, look at that one, in turn; without blocks, each row is one."""
    blocks_N = np.arange(len(residuals_N)) if blocks_N is None else blocks_N
    width_N = np.empty(len(residuals_N))
    for fold in np.unique(folds_N):
        out_N = folds_N == fold
        scales = None if scales_N is None else scales_N[~out_N]
        fitted = Conformal.fit(residuals_N[~out_N], scales, blocks_N[~out_N], coverage)
        width_N[out_N] = fitted.quantile * (1.0 if scales_N is None else scales_N[out_N])
    inside_N = np.abs(residuals_N) <= width_N
    _, block_N, size_G = np.unique(blocks_N, return_inverse=True, return_counts=True)
    return MeasuredCoverage(
        promised=coverage,
        rows=float(inside_N.mean()),
        blocks=float((np.bincount(block_N, inside_N) / size_G).mean()),
        per_fold={str(fold): float(inside_N[folds_N == fold].mean()) for fold in np.unique(folds_N)},
        half_width=float(width_N.mean()),
    )


def _scores(residuals_N: np.ndarray, scales_N: np.ndarray | None) -> np.ndarray:
    return np.abs(np.asarray(residuals_N, dtype=np.float64)) / (1.0 if scales_N is None else scales_N)
