"""What is odd about plots, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mirada.data.geo.column_names import listed
from mirada.data.geo.plots import Plots
from mirada.data.geo.sphere import nearest_km

NODATA_NUMBERS = np.array([-9999, -99999, -32768, 65535, 1e20, -1e20, np.finfo(np.float32).min], np.float32)
TOO_ALIKE = 0.999  # correlation of a covariate with the target
CLUSTERED = 0.5
FEW_BLOCKS = 10
MOSTLY = 0.5


def problems_of_plots(plots: Plots) -> list[str]:
    """Reasons why nothing can be learnt; what is wrong with a file itself is said when it is opened."""
    if plots.splits is not None and not (plots.splits == "train").any():
        return ["the given split has no training rows; call some of them train."]
    return []


def warnings_of_plots(plots: Plots, neighbour_N: np.ndarray, spacing: float | None, num_blocks: int) -> list[str]:
    """neighbour_N: km from each row to its nearest; spacing: the ratio of check.py."""
    found = [*_places(plots, spacing, num_blocks), *_given_split(plots, neighbour_N)]
    for what, values, names in _layers(plots):
        found += _columns(what, values, names)
    found += _copies_of_target(plots)
    return found


def _places(plots: Plots, spacing: float | None, num_blocks: int) -> Iterator[str]:
    num_zero = int((plots.lonlat_N2 == 0).all(axis=1).sum())
    if num_zero:
        yield f"{num_zero:,} plots lie at 0° east, 0° north, which often stands for an unknown place."
    if spacing is not None and spacing < CLUSTERED:
        yield (
            f"the plots are clustered (nearest neighbours are {spacing:.2f} times as far as if spread at random): "
            "a random split flatters the result, so go by the blocked one."
        )
    if num_blocks < FEW_BLOCKS:
        yield f"the plots fill only {num_blocks} blocks, so a blocked result is uncertain; add plots elsewhere."


def _given_split(plots: Plots, neighbour_N: np.ndarray) -> Iterator[str]:
    if plots.splits is None:
        return
    train, test = plots.splits == "train", plots.splits == "test"
    if train.any() and test.any():
        away = float(np.median(nearest_km(plots.lonlat_N2[test], plots.lonlat_N2[train])))
        if away <= 2 * float(np.median(neighbour_N)):
            yield (
                f"the given split has test rows beside training rows (median {away:.3g} km): its result says how well "
                "gaps are filled, not how well new places are predicted."
            )


def _layers(plots: Plots) -> Iterator[tuple[str, np.ndarray, tuple[str, ...]]]:
    yield "covariate", plots.covariates_ND, plots.covariate_names
    if plots.chips is not None:
        yield "band", plots.chips.pixels_NCHW, plots.chips.band_names


def _columns(what: str, values: np.ndarray, names: tuple[str, ...]) -> Iterator[str]:
    constant, missing = [], []
    remedy = "leave them empty" if what == "covariate" else "set it as the nodata value of the raster"
    for number, name in enumerate(names):
        column = values[:, number]
        known = column[np.isfinite(column)]
        if not known.size or known.size < MOSTLY * column.size:
            missing.append(name)
        if known.size and known.min() == known.max():
            constant.append(name)
        for number_of_nodata in NODATA_NUMBERS[np.isin(NODATA_NUMBERS, known)]:
            share = f"{100 * (known == number_of_nodata).mean():.2g} %"
            yield f"the {what} {name} is {number_of_nodata:g} in {share} of its cells; if that means no data, {remedy}."
    if constant:
        yield f"{what}s that never vary: {listed(constant)}."
    if missing:
        yield f"{what}s that are missing more often than not: {listed(missing)}."


def _copies_of_target(plots: Plots) -> Iterator[str]:
    copies = []
    for number, name in enumerate(plots.covariate_names):
        column = plots.covariates_ND[:, number].astype(np.float64)
        known = np.isfinite(column)
        targets = plots.targets_N[known].astype(np.float64)
        is_varied = known.sum() > 2 and column[known].std() > 0 and targets.std() > 0
        if is_varied and abs(np.corrcoef(column[known], targets)[0, 1]) > TOO_ALIKE:
            copies.append(name)
    if copies:
        yield f"covariates that say what the target is: {listed(copies)}; leave them out unless a map can have them."
