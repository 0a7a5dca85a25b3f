"""Look at texts before training: counts, lengths, copies, leaks, odd pairs, odd characters, balance of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mirada.data.fingerprint import same_rows
from mirada.data.table import SPLIT_NAMES
from mirada.data.text.oddities import ODD_CHARACTER, is_misread, is_odd_length, is_untranslated, same_text
from mirada.data.text.suspicions import problems_of_text, warnings_of_text
from mirada.data.text.table import TextTable
from mirada.errors import MiradaError

VERY_LONG = 1_000  # words
LEAKING_WORDS = 5  # shorter lines of a plain text are repeated without having been copied
SHOWN = 5


@dataclass(frozen=True)
class Lengths:
    """How much text there is, and how long its rows are that are not blank."""

    num_characters: int
    num_different_characters: int
    num_words: int
    median: int  # words
    most: int  # 95 % of the rows have no more words
    longest: int


@dataclass(frozen=True)
class TextInspection:
    """What a look at the texts found."""

    source: str
    kind: str
    num_rows: int
    split_counts: dict[str, int]  # 'all' when no split is given
    lengths: dict[str, Lengths]  # by the name of the column
    class_counts: dict[str, dict[str, int]]  # class -> split -> texts
    num_empty: int  # blank lines of plain text; otherwise rows that were left out
    num_too_long: int  # pairs that were left out
    num_very_long: int  # rows of more than VERY_LONG words
    num_copies: int  # rows that repeat another one wholly
    num_leaks: dict[str, int]  # by column: texts that lie on more than one side of the given split
    num_conflicts: int  # texts with several labels
    num_identical: int  # pairs whose sides are equal
    num_untranslated: int  # other pairs whose target consists mostly of words of the source
    num_odd_lengths: int  # pairs of which one side is far longer
    num_odd_characters: int
    num_misread: int  # rows that were once read in another encoding
    examples: dict[str, tuple[str, ...]]  # for some of the counts: names of the first rows
    problems: tuple[str, ...]  # these stop training
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict:
        """Plain dictionaries and lists, for JSON."""
        return asdict(self)


def inspect_text(table: TextTable) -> TextInspection:
    """Read every row once and report."""
    rows = _odd_rows(table)
    leaks = {name: _num_leaks(table, column) for name, column in table.sides.items()}
    blank = sum(not text.strip() for text in table.texts)
    odd = sum(len(ODD_CHARACTER.findall(text)) for column in table.sides.values() for text in column)
    return TextInspection(
        source=table.source,
        kind=table.kind,
        num_rows=len(table),
        split_counts={name: len(found) for name, found in _sides(table).items()},
        lengths={name: _lengths(column) for name, column in table.sides.items()},
        class_counts=_class_counts(table),
        num_empty=blank if table.kind == "plain" else table.num_empty,
        num_too_long=table.num_too_long,
        num_very_long=len(rows["very long"]),
        num_copies=len(rows["copies"]),
        num_leaks=leaks,
        num_conflicts=len(rows["conflicts"]),
        num_identical=len(rows["identical"]),
        num_untranslated=len(rows["untranslated"]),
        num_odd_lengths=len(rows["odd lengths"]),
        num_odd_characters=odd,
        num_misread=len(rows["misread"]),
        examples={what: tuple(table.name(row) for row in found[:SHOWN]) for what, found in rows.items() if found},
        problems=tuple(problems_of_text(table)),
        warnings=tuple(warnings_of_text(table, {what: len(found) for what, found in rows.items()}, leaks, odd)),
        notes=table.notes,
    )


def require_trainable_text(table: TextTable) -> None:
    """Raise with the first problem, if there is one."""
    for problem in problems_of_text(table):
        raise MiradaError(f"{table.source}: {problem}")


def _odd_rows(table: TextTable) -> dict[str, list[int]]:
    """What there is to say about single rows, and the rows it is said of."""
    pairs = list(zip(table.texts, table.targets or (), strict=False))
    labels = [None] * len(table) if table.labels is None else table.labels.tolist()
    contents = zip(*table.sides.values(), labels, strict=True)
    keys = [(*map(same_text, texts), label) if _counts(table, texts[0]) else None for *texts, label in contents]
    by_text = [] if table.labels is None else same_rows([key[0] if key else None for key in keys])
    every = range(len(table))
    return {
        "very long": [
            row for row in every if any(len(column[row].split()) > VERY_LONG for column in table.sides.values())
        ],
        "copies": sorted(row for group in same_rows(keys) for row in group[1:]),
        "conflicts": [group[0] for group in by_text if len({labels[row] for row in group}) > 1],
        "identical": [row for row, (source, target) in enumerate(pairs) if source == target],
        "untranslated": [row for row, pair in enumerate(pairs) if pair[0] != pair[1] and is_untranslated(*pair)],
        "odd lengths": [row for row, pair in enumerate(pairs) if is_odd_length(*pair)],
        "odd characters": [
            row for row in every if any(ODD_CHARACTER.search(column[row]) for column in table.sides.values())
        ],
        "misread": [row for row in every if any(is_misread(column[row]) for column in table.sides.values())],
    }


def _counts(table: TextTable, text: str) -> bool:
    """Whether a text that comes again is a copy."""
    return table.kind != "plain" or len(text.split()) >= LEAKING_WORDS


def _num_leaks(table: TextTable, column: Sequence[str]) -> int:
    """Different texts that lie on more than one side."""
    if table.splits is None:
        return 0
    keys = [same_text(text) if _counts(table, text) else None for text in column]
    return sum(len({table.splits[row] for row in group}) > 1 for group in same_rows(keys))


def _lengths(column: Sequence[str]) -> Lengths:
    words = np.array([num for text in column if (num := len(text.split()))] or [0])
    return Lengths(
        num_characters=sum(map(len, column)),
        num_different_characters=len(set().union(*column)),
        num_words=int(words.sum()),
        median=int(np.median(words)),
        most=int(np.quantile(words, 0.95, method="inverted_cdf")),
        longest=int(words.max()),
    )


def _sides(table: TextTable) -> dict[str, np.ndarray]:
    if table.splits is None:
        return {"all": np.arange(len(table))}
    return {name: np.flatnonzero(table.splits == name) for name in SPLIT_NAMES}


def _class_counts(table: TextTable) -> dict[str, dict[str, int]]:
    if table.labels is None:
        return {}
    counts = {side: table.class_counts(rows) for side, rows in _sides(table).items()}
    return {name: {side: int(counts[side][i]) for side in counts} for i, name in enumerate(table.class_names)}
