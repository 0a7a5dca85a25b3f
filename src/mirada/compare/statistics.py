"""Means over seeds, and differences to the first entrant on the same images.

    mean ± t_{0.975, S−1} s/√S                         over S seeds
    d = mean over seeds s and images i of (a_si − b_si)     paired; its interval by drawing seeds and images anew

A seed of one entrant is paired with the same seed of the other: they share the split and the order of the data.
"""

from __future__ import annotations

import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder

DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    value: float
    low: float | None  # None: one seed tells nothing about the next
    high: float | None

    @property
    def is_clear(self) -> bool:
        """For a difference: zero is outside."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def mean_over_seeds(values: list[float]) -> Interval:
    mean = statistics.mean(values)
    if len(values) < 2:
        return Interval(mean, None, None)
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5
    return Interval(mean, mean - half, mean + half)


def difference(ours: list[RunFolder], first: list[RunFolder]) -> Interval:
    """How much better `ours` is, seed by seed and, where images are right or wrong, image by image."""
    metric = ours[0].read_result()["metric"]
    if metric != "accuracy":
        values = [a.read_result()["value"] - b.read_result()["value"] for a, b in zip(ours, first, strict=True)]
        return mean_over_seeds(values)
    pairs = [right_of(a.predictions) - right_of(b.predictions) for a, b in zip(ours, first, strict=True)]
    gain_SN = np.stack(pairs)
    generator = np.random.default_rng(0)
    num_seeds, num_images = gain_SN.shape
    draws = []
    for _ in range(DRAWS):
        seeds = generator.integers(0, num_seeds, num_seeds)
        images = generator.integers(0, num_images, num_images)
        draws.append(gain_SN[seeds].mean(0)[images].mean())
    low, high = np.percentile(draws, [2.5, 97.5])
    return Interval(float(gain_SN.mean()), float(low), float(high))


def right_of(predictions: Path) -> np.ndarray:
    """1.0 where the held-out image was named rightly, by row of the data."""
    try:
        with open(predictions, newline="", encoding="utf-8") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: int(row["row"]))
        return np.array([float(row["predicted"] == row["target"]) for row in rows])
    except (OSError, KeyError, ValueError) as error:
        raise MiradaError(f"{predictions}: cannot be read ({error}); train this run again.") from error
