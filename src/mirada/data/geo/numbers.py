"""Cells of a table as numbers: what is a number, what is missing, what is a word; and years out of dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "nat", "<na>", "null", "none", "-", "?"))
_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")


@dataclass(frozen=True, eq=False)
class Numbers:
    values_N: np.ndarray  # float64, NaN where there is no number
    num_words: int  # cells that are neither a number nor missing
    word: str = ""  # the first of them

    @property
    def is_numeric(self) -> bool:
        return self.num_words == 0 and bool(np.isfinite(self.values_N).any())


def numbers_of(cells: Sequence[str]) -> Numbers:
    try:
        return Numbers(_finite(np.array(cells, dtype=np.float64)), 0)
    except ValueError:  # a cell is empty or a word
        pass
    values, words = [], []
    for cell in cells:
        try:
            values.append(float(cell))
        except ValueError:
            values.append(np.nan)
            words += [] if cell.strip().lower() in MISSING else [cell]
    return Numbers(_finite(np.array(values)), len(words), words[0] if words else "")


def is_identifying(values_N: np.ndarray) -> bool:
    """Whole numbers, each once: what a table counts its rows by."""
    return bool((values_N == np.rint(values_N)).all()) and len(np.unique(values_N)) == len(values_N)


def years_of(cells: Sequence[str]) -> np.ndarray:
    """(N,) the year in each date, '2015-03-02' or '2 March 2015'; NaN where there is none."""
    found = map(_YEAR.search, cells)
    return np.array([float(match[1]) if match else np.nan for match in found])


def _finite(values_N: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values_N), values_N, np.nan)
