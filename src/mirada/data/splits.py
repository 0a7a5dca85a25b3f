"""Divide a table into train, val and test: stratified, without leaks, seeded, written down.

Rows that share a group, or whose images are identical, are one unit and stay on one side. Every
class (label, or tenth of a regression target) is divided on its own:

    1 unit       train (it cannot be tested)
    2 units      train, test
    3 or more    at least one each in train, val and test

Splits that come with the data are kept; a missing val is then taken out of train by the same rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mirada.data.fingerprint import same_rows
from mirada.data.table import SPLIT_NAMES, ImageTable
from mirada.errors import MiradaError

TRAIN, VAL, TEST = range(3)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of the table on each side, sorted."""

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    how: str  # 'given' | 'stratified' | 'grouped' | 'contiguous' (text) | 'random' | 'blocked' | 'buffered' (plots)
    seed: int
    notes: tuple[str, ...] = ()

    def rows(self, name: str) -> np.ndarray:
        assert name in SPLIT_NAMES
        return getattr(self, name)

    def checksum(self) -> str:
        """SHA-256 of the three lists of rows."""
        digest = hashlib.sha256()
        for name in SPLIT_NAMES:
            digest.update(name.encode() + self.rows(name).astype("<i8").tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict:
        """Everything, as plain lists for JSON."""
        sides = {name: self.rows(name).tolist() for name in SPLIT_NAMES}
        return {"how": self.how, "seed": self.seed, "checksum": self.checksum(), "notes": list(self.notes), **sides}

    @classmethod
    def from_dict(cls, saved: dict) -> Split:
        """The inverse of to_dict; the checksum must agree."""
        sides = {name: np.asarray(saved[name], dtype=np.int64) for name in SPLIT_NAMES}
        split = cls(**sides, how=saved["how"], seed=saved["seed"], notes=tuple(saved.get("notes", ())))
        if split.checksum() != saved["checksum"]:
            raise MiradaError("the saved split does not match its checksum; it was edited or damaged, so split again.")
        return split


def make_split(
    table: ImageTable,
    *,
    seed: int = 0,
    val: float = 0.15,
    test: float = 0.15,
    hashes: Sequence[bytes | None] | None = None,
) -> Split:
    """Split a table; `hashes` (one per row, see fingerprint.py) keep identical images together."""
    require_shares(val, test)
    assert hashes is None or len(hashes) == len(table)
    units = _units(table, hashes)
    generator = np.random.default_rng(seed)
    if table.splits is not None:
        return _complete_given(table, units, val, seed, generator, hashes)
    sides = assign(strata(table), units, (1 - val - test, val, test), generator)
    _require_held_out(sides, table)
    grouped = len(np.unique(units)) < len(units)
    return _as_split(sides, "grouped" if grouped else "stratified", seed, _rare_notes(table, sides))


def require_shares(val: float, test: float) -> None:
    if not (0 < val < 1 and 0 < test < 1 and val + test < 1):
        raise MiradaError(f"val={val} and test={test}, expected two fractions above 0 that add up to less than 1.")


def strata(table: ImageTable) -> np.ndarray:
    """(N,) what to balance between the sides: the class, the rarest label, or the tenth of the first target."""
    if table.task == "single-label":
        return table.targets
    if table.task == "multi-label":
        rarity = np.where(table.targets > 0, table.class_counts()[None, :], len(table) + 1)
        return np.where(table.targets.any(axis=1), rarity.argmin(axis=1), len(table.class_names))
    values = table.targets[:, 0]
    edges = np.quantile(values, np.linspace(0, 1, min(10, max(1, len(values) // 10)) + 1)[1:-1])
    return np.searchsorted(edges, values, side="right")


def crossing_duplicates(splits: np.ndarray, hashes: Sequence[bytes | None]) -> list[list[int]]:
    """Groups of identical images that lie on more than one side."""
    return [group for group in same_rows(hashes) if len({splits[row] for row in group}) > 1]


def _units(table: ImageTable, hashes: Sequence[bytes | None] | None) -> np.ndarray:
    """(N,) unit number: rows of the same group or with the same image are one unit."""
    keys = [] if table.groups is None else [table.groups]
    if hashes is not None:
        first_row = {key: row for row, key in reversed(list(enumerate(hashes))) if key is not None}
        keys.append(np.array([row if key is None else first_row[key] for row, key in enumerate(hashes)]))
    return connected(keys, len(table))


def connected(keys: Sequence[np.ndarray], n: int) -> np.ndarray:
    """(N,) unit number: rows that agree in one of the keys, or are linked by others that do, are one unit."""
    if not keys:
        return np.arange(n)
    numbers = [np.unique(key, return_inverse=True)[1] + (i + 1) * n for i, key in enumerate(keys)]
    edges = (np.tile(np.arange(n), len(keys)), np.concatenate(numbers))
    graph = coo_array((np.ones(len(edges[0]), np.int8), edges), shape=((len(keys) + 1) * n,) * 2)
    return np.unique(connected_components(graph, directed=False)[1][:n], return_inverse=True)[1]


def assign(
    stratum: np.ndarray, units: np.ndarray, shares: tuple[float, ...], generator: np.random.Generator
) -> np.ndarray:
    """(N,) side of each row. Units of several rows go first, largest first; single rows fill up what is missing."""
    stratum = np.unique(stratum, return_inverse=True)[1]
    room = _quotas(stratum, units, shares)
    sides = np.full(len(stratum), TRAIN)
    sizes = np.bincount(units)
    members = np.split(np.argsort(units, kind="stable"), np.cumsum(sizes)[:-1])
    shuffled = generator.permutation(len(sizes))
    large = shuffled[sizes[shuffled] > 1]
    _place_large([members[unit] for unit in large[np.argsort(-sizes[large], kind="stable")]], stratum, room, sides)
    single = np.array([members[unit][0] for unit in shuffled[sizes[shuffled] == 1]], dtype=np.int64)
    for value in range(len(room)):
        rows = single[stratum[single] == value]
        take_test, take_val = np.maximum(room[value, [TEST, VAL]], 0)
        sides[rows[:take_test]] = TEST
        sides[rows[take_test : take_test + take_val]] = VAL
    return sides


def _place_large(units: list[np.ndarray], stratum: np.ndarray, room: np.ndarray, sides: np.ndarray) -> None:
    """Each unit goes where its rows find most room; the last units of a class go to sides that have none of it yet."""
    wanted = room > 0
    main = [np.bincount(stratum[rows]).argmax() for rows in units]
    left = np.bincount(main, minlength=len(room))
    for rows, value in zip(units, main, strict=True):
        counts = np.bincount(stratum[rows], minlength=len(room))
        fit = np.minimum(counts[:, None], room).sum(axis=0) + 1e-6 * room.sum(axis=0)
        if left[value] <= wanted[value].sum():
            fit = np.where(wanted[value], fit, -np.inf)
        side = int(fit.argmax())
        sides[rows] = side
        room[:, side] -= counts
        wanted[counts > 0, side] = False
        left[value] -= 1


def _quotas(stratum: np.ndarray, units: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """(strata, 3) wanted rows on each side, by the table at the top of this file."""
    quotas = np.zeros((stratum.max() + 1, 3), dtype=np.int64)
    pairs = np.unique(np.stack([stratum, units]), axis=1)
    units_of = np.bincount(pairs[0], minlength=len(quotas))
    for value, (rows, units_here) in enumerate(zip(np.bincount(stratum), units_of, strict=True)):
        held = [round(rows * shares[side]) for side in (VAL, TEST)]
        least_test = 1 if shares[TEST] > 0 and units_here >= 2 else 0
        least_val = 1 if shares[VAL] > 0 and units_here >= (3 if shares[TEST] > 0 else 2) else 0
        test = max(held[1], least_test) if least_test else 0
        val = max(held[0], least_val) if least_val else 0
        quotas[value] = rows - val - test, val, test
    return quotas


def _complete_given(table, units, val, seed, generator, hashes) -> Split:
    sides = np.array([SPLIT_NAMES.index(name) for name in table.splits])
    notes: list[str] = []
    if not (sides == TRAIN).any():
        raise MiradaError(f"{table.source}: the given split has no training images.")
    if hashes is not None:
        leaks = crossing_duplicates(table.splits, hashes)
        if leaks:
            notes.append(
                f"{len(leaks)} images appear on more than one side of the given split, which flatters the result."
            )
    if not (sides == VAL).any():
        train = np.flatnonzero(sides == TRAIN)
        inner = assign(strata(table)[train], units[train], (1 - val, val, 0.0), generator)
        sides[train] = inner
        notes.append(f"the data gives no validation images: {int((inner == VAL).sum())} were taken out of train.")
    if not (sides == TEST).any():
        notes.append(
            "the data gives no test images: results on val are optimistic, because val also chooses the epoch."
        )
    _require_held_out(sides, table)
    return _as_split(sides, "given", seed, notes)


def require_validation(split: Split, source: str) -> None:
    """Without validation images no weights can be chosen."""
    if not len(split.val):
        raise MiradaError(
            f"{source}: there are too few images to hold some out for validation; give at least three of a class."
        )


def _require_held_out(sides: np.ndarray, table: ImageTable) -> None:
    if not (sides == TRAIN).any() or not (sides > TRAIN).any():
        raise MiradaError(
            f"{table.source}: {len(table)} images cannot be divided into training and held-out images; "
            "at least one class needs two different images in two groups."
        )


def _rare_notes(table: ImageTable, sides: np.ndarray) -> list[str]:
    if table.task == "regression":
        return []
    tested = table.class_counts(np.flatnonzero(sides == TEST))
    untested = [name for name, count in zip(table.class_names, tested, strict=True) if count == 0]
    return [f"classes without a test image (too few images): {', '.join(untested)}."] if untested else []


def _as_split(sides: np.ndarray, how: str, seed: int, notes: Sequence[str]) -> Split:
    train, val, test = (np.flatnonzero(sides == side) for side in (TRAIN, VAL, TEST))
    return Split(train, val, test, how, seed, tuple(notes))
