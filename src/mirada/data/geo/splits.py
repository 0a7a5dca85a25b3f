"""Divide plots for training and testing, at random or in space.

    random     every row on its own: neighbours lie on both sides, so the result says how well gaps are filled
    blocked    whole blocks on one side: the result says how well a model does where it has not been
    buffered   blocked, and training rows nearer than `buffer_km` to a held-out row are left out

A split that comes with the data is kept; a missing val is taken out of train by the same scheme.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.data.geo.blocks import Block, auto_block_km, block_km, blocks_of
from mirada.data.geo.plots import Plots
from mirada.data.geo.sphere import nearest_km
from mirada.data.splits import TEST, TRAIN, VAL, Split, require_shares
from mirada.data.table import SPLIT_NAMES
from mirada.errors import MiradaError, nearest

SCHEMES = ("random", "blocked", "buffered")
ORDERS = 64  # random orders of the blocks that are tried, for the shares that come nearest

__all__ = ["SCHEMES", "auto_block_km", "blocks_of", "folds_of", "kept_rows", "known_rows", "split_plots"]


def folds_of(
    plots: Plots,
    scheme: str,
    *,
    folds: int = 5,
    block: Block | None = None,
    buffer_km: float | None = None,
    seed: int = 0,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """[(train rows, test rows)], sorted: every row is tested once. The block is found, and the buffer half of it,
    unless they are given.
    """
    require_scheme(scheme)
    size = _block(plots, block)
    fold_N = _equal_folds(plots, _units(plots, scheme, size), folds, np.random.default_rng(seed))
    divided = []
    for number in range(folds):
        test = np.flatnonzero(fold_N == number)
        train = np.flatnonzero(fold_N != number)
        if scheme == "buffered":
            train = _without_near(plots, train, test, _buffer(size, buffer_km))
        divided.append((train, test))
    return divided


def known_rows(split: Split) -> np.ndarray:
    """The rows whose targets a trained model may look at, sorted: those it learned from, and those that chose it."""
    return np.sort(np.concatenate([split.train, split.val]))


def kept_rows(known: np.ndarray, most: int) -> np.ndarray:
    """Of the known rows, those that a model which looks at plots keeps to look at: all, or so many, drawn."""
    if len(known) <= most:
        return known
    return known[np.sort(np.random.default_rng(0).choice(len(known), most, replace=False))]


def split_plots(
    plots: Plots,
    scheme: str = "blocked",
    *,
    val: float = 0.1,
    test: float = 0.2,
    block: Block | None = None,
    buffer_km: float | None = None,
    seed: int = 0,
) -> Split:
    """Rows of each side; rows inside a buffer are on none."""
    require_scheme(scheme)
    require_shares(val, test)
    size, generator = _block(plots, block), np.random.default_rng(seed)
    units = _units(plots, scheme, size)
    notes: list[str] = []
    if plots.splits is None:
        sides = _assigned(plots, units, (1 - val - test, val, test), generator)
        if scheme != "random":
            num = [len(np.unique(units[sides == side])) for side in (TRAIN, VAL, TEST)]
            notes.append(f"blocks of {block_km(size):.4g} km: {num[0]} for train, {num[1]} for val, {num[2]} for test.")
    else:
        sides = np.array([SPLIT_NAMES.index(name) for name in plots.splits])
        train = np.flatnonzero(sides == TRAIN)
        if not len(train):
            raise MiradaError(f"{plots.source}: the given split has no training rows; call some of them train.")
        if not (sides == VAL).any():
            sides[train] = _assigned(plots, units[train], (1 - val, val, 0.0), generator)
            notes.append(f"the data gives no validation rows: {int((sides == VAL).sum())} were taken out of train.")
        if not (sides == TEST).any():
            notes.append("the data gives no test rows: results on val are optimistic, for val also chooses the epoch.")
    train, held_val, held_test = (np.flatnonzero(sides == side) for side in (TRAIN, VAL, TEST))
    if scheme == "buffered":
        around = _buffer(size, buffer_km)
        far = _without_near(plots, train, np.flatnonzero(sides != TRAIN), around)
        notes.append(f"{len(train) - len(far):,} rows within {around:.4g} km of val or test are left out of train.")
        train = far
    return Split(train, held_val, held_test, scheme if plots.splits is None else "given", seed, tuple(notes))


def require_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise MiradaError(f"scheme is {scheme!r}{nearest(scheme, SCHEMES)}, expected one of {', '.join(SCHEMES)}.")


def _block(plots: Plots, block: Block | None) -> Block:
    return auto_block_km(plots) if block is None else block


def _units(plots: Plots, scheme: str, block: Block) -> np.ndarray:
    """(N,) rows of the same unit stay together: each its own, or those of a block."""
    return np.arange(len(plots)) if scheme == "random" else blocks_of(plots, block)


def _buffer(block: Block, buffer_km: float | None) -> float:
    if buffer_km is not None and not buffer_km >= 0:
        raise MiradaError(f"buffer_km is {buffer_km}, expected a distance in km.")
    return block_km(block) / 2 if buffer_km is None else buffer_km


def _equal_folds(plots: Plots, units: np.ndarray, folds: int, generator: np.random.Generator) -> np.ndarray:
    """(N,) fold of each row: units in random order, the largest first, each go to the fold that has fewest rows."""
    sizes = np.bincount(units)
    if not 2 <= folds <= len(sizes):
        what = "rows" if len(sizes) == len(plots) else "blocks"
        raise MiradaError(
            f"{plots.source}: {folds} folds of {len(sizes)} {what}, expected between 2 and {len(sizes)}; "
            "give fewer folds or a smaller block."
        )
    shuffled = generator.permutation(len(sizes))
    filled, fold_of_unit = np.zeros(folds, dtype=np.int64), np.empty(len(sizes), dtype=np.int64)
    for unit in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of_unit[unit] = filled.argmin()
        filled[fold_of_unit[unit]] += sizes[unit]
    return fold_of_unit[units]


def _assigned(plots: Plots, units: np.ndarray, shares: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    """(N,) side of each row: units in random order fill test, then val, then train; of some such orders the one whose
    shares come nearest to the wanted ones, for blocks differ in size.
    """
    units = np.unique(units, return_inverse=True)[1]
    sizes, wanted = np.bincount(units), np.array(shares)
    bounds = np.cumsum([shares[TEST], shares[VAL]]) * len(units)
    best, side_of_unit = np.inf, None
    for _ in range(ORDERS):
        order = generator.permutation(len(sizes))
        middle = np.cumsum(sizes[order]) - sizes[order] / 2
        sides = np.empty(len(sizes), dtype=np.int64)
        sides[order] = np.array([TEST, VAL, TRAIN])[np.searchsorted(bounds, middle, side="right")]
        found = np.bincount(sides, weights=sizes, minlength=3) / len(units)
        error = np.abs(found - wanted).sum()
        if ((found > 0) >= (wanted > 0)).all() and error < best:
            best, side_of_unit = error, sides
    if side_of_unit is None:
        raise MiradaError(
            f"{plots.source}: its {len(sizes)} blocks cannot be divided into train, val and test; give a smaller block."
        )
    return side_of_unit[units]


def _without_near(plots: Plots, train: np.ndarray, held_out: np.ndarray, km: float) -> np.ndarray:
    """The training rows at least `km` away from every held-out row."""
    far = train[nearest_km(plots.lonlat_N2[train], plots.lonlat_N2[held_out]) >= km]
    if not len(far):
        raise MiradaError(
            f"{plots.source}: all training rows lie within {km:g} km of held-out rows; give a smaller buffer_km."
        )
    return far
