"""Divide texts into train, val and test without leaks, by the kind of table.

    plain      by position: the first characters are train, then come val and test, for neighbouring lines are alike
    pairs      at random, whole units: pairs that share a source or a target sentence stay on one side
    labelled   every class on its own, as for images; identical texts stay on one side

Splits that come with the data are kept; a missing val is taken out of train by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.data.splits import TEST, TRAIN, VAL, Split, assign, connected
from mirada.data.table import SPLIT_NAMES
from mirada.data.text.oddities import same_text
from mirada.data.text.table import TextTable
from mirada.errors import MiradaError

# A unit over this share of the smallest held-out side goes to train, so that it does not become most of that side.
LARGE_UNIT = 0.1


def split_text(table: TextTable, *, val: float = 0.1, test: float = 0.1, seed: int = 0) -> Split:
    """Rows of each side; `test` may be 0, where only the loss on val is asked for."""
    if not (0 < val < 1 and 0 <= test < 1 and val + test < 1):
        raise MiradaError(f"val={val} and test={test}, expected two fractions (val above 0) that sum to less than 1.")
    generator = np.random.default_rng(seed)
    if table.splits is not None:
        return _complete_given(table, val, seed, generator)
    sides = _divide(table, (1 - val - test, val, test), generator)
    if test > 0 and not (sides == TEST).any():
        raise MiradaError(_too_few(table))
    notes = _rare_notes(table, sides) if test > 0 else ["there is no test side, as test=0 asks for."]
    return _as_split(table, sides, _how(table), seed, notes)


def units_of(table: TextTable) -> np.ndarray:
    """(N,) unit number: rows with the same text, up to case and spaces, on either side of a pair are one unit."""
    return connected([_numbered(column) for column in table.sides.values()], len(table))


def _numbered(texts: Sequence[str]) -> np.ndarray:
    """(N,) equal numbers for equal texts; an array of the texts themselves would be as wide as the longest."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(same_text(text), len(numbers)) for text in texts], dtype=np.int64)


def _how(table: TextTable) -> str:
    return {"plain": "contiguous", "pairs": "grouped", "labelled": "stratified"}[table.kind]


def _divide(table: TextTable, shares: tuple[float, ...], generator: np.random.Generator) -> np.ndarray:
    """(N,) side of each row."""
    if table.kind == "plain":
        return _by_position(np.array([len(text) for text in table.texts]), shares)
    if table.labels is not None:
        return assign(table.labels, units_of(table), shares, generator)
    return _whole_units(units_of(table), shares, generator)


def _by_position(num_characters: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """A row belongs to the side in which its middle character lies."""
    middle = np.cumsum(num_characters) - num_characters / 2
    bounds = np.cumsum(shares)[:TEST] * num_characters.sum()
    return np.searchsorted(bounds, middle, side="right")


def _whole_units(units: np.ndarray, shares: tuple[float, ...], generator: np.random.Generator) -> np.ndarray:
    """Units in random order fill val, then test (at least one row each), then train."""
    sizes = np.bincount(units)
    wanted = np.array([max(1.0, share * len(units)) if share > 0 else 0.0 for share in (shares[VAL], shares[TEST])])
    small = sizes <= max(1, LARGE_UNIT * wanted[wanted > 0].min())
    shuffled = generator.permutation(np.flatnonzero(small))
    middle = np.cumsum(sizes[shuffled]) - sizes[shuffled] / 2
    side_of_unit = np.full(len(sizes), TRAIN)
    side_of_unit[shuffled[middle < wanted.sum()]] = TEST
    side_of_unit[shuffled[middle < wanted[0]]] = VAL
    return side_of_unit[units]


def _complete_given(table: TextTable, val: float, seed: int, generator: np.random.Generator) -> Split:
    assert table.splits is not None
    sides = np.array([SPLIT_NAMES.index(name) for name in table.splits])
    notes = []
    if not (sides == TRAIN).any():
        raise MiradaError(f"{table.source}: the given split has no training rows; name a file or rows of it train.")
    if not (sides == VAL).any():
        train = np.flatnonzero(sides == TRAIN)
        sides[train] = _divide(table.subset(train), (1 - val, val, 0.0), generator)
        notes.append(f"the data gives no validation rows: {int((sides == VAL).sum())} were taken out of train.")
    if not (sides == TEST).any():
        notes.append("the data gives no test rows: results on val are optimistic, because val also chooses the epoch.")
    return _as_split(table, sides, "given", seed, notes)


def _as_split(table: TextTable, sides: np.ndarray, how: str, seed: int, notes: list[str]) -> Split:
    train, val, test = (np.flatnonzero(sides == side) for side in (TRAIN, VAL, TEST))
    if not len(train) or not len(val):
        raise MiradaError(_too_few(table))
    return Split(train, val, test, how, seed, tuple(notes))


def _too_few(table: TextTable) -> str:
    what = "lines" if table.kind == "plain" else "different texts"
    return f"{table.source}: {len(table)} rows are too few to train on some and hold others out; add {what}."


def _rare_notes(table: TextTable, sides: np.ndarray) -> list[str]:
    if table.labels is None:
        return []
    tested = table.class_counts(np.flatnonzero(sides == TEST))
    untested = [name for name, count in zip(table.class_names, tested, strict=True) if count == 0]
    return [f"classes without a test text (too few texts): {', '.join(untested)}."] if untested else []
