"""From what was read to the rows of a TextTable: long lines are cut, unusable pairs left out, labels numbered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mirada.data.labels import encode_text
from mirada.data.text.table import TextTable
from mirada.errors import MiradaError

LONGEST_LINE = 2_000  # characters of one row of plain text
LONGEST_SENTENCE = 10_000  # characters of either side of a pair

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Cells(NamedTuple):
    """The rows of one source: two columns of text, the place of each row, and its split if it has one."""

    texts: list[str]
    others: list[str]
    places: list[str]  # 'train.tsv, line 7'
    splits: list[str] | None


def plain_table(source: str, contents: Sequence[str], splits: Sequence[str] | None, notes: Sequence[str]) -> TextTable:
    """One content per file; a file that does not end in a line end gets one, so that the next begins a line."""
    texts: list[str] = []
    sides: list[str] = []
    num_cut = 0
    for number, content in enumerate(contents):
        for line in _LINE.findall(content if content.endswith("\n") else content + "\n"):
            pieces = list(_pieces(line))
            num_cut += len(pieces) > 1
            texts += pieces
            sides += [splits[number]] * len(pieces) if splits else []
    cut = (
        f"{num_cut} lines of more than {LONGEST_LINE:,} characters count as several rows; the text itself is unchanged."
    )
    return TextTable(
        source=source,
        kind="plain",
        texts=texts,
        splits=np.array(sides) if splits else None,
        notes=(*notes, cut) if num_cut else tuple(notes),
    )


def pairs_table(source: str, cells: Cells, names: tuple[str, str], notes: Sequence[str]) -> TextTable:
    """Pairs with two sides of a usable length."""
    empty = [not (text and other) for text, other in zip(cells.texts, cells.others, strict=True)]
    long = [
        max(len(text), len(other)) > LONGEST_SENTENCE for text, other in zip(cells.texts, cells.others, strict=True)
    ]
    kept = _kept(cells, [a or b for a, b in zip(empty, long, strict=True)])
    if not kept.texts:
        raise MiradaError(
            f"{source}: none of its {len(cells.texts)} pairs has two texts of 1 to {LONGEST_SENTENCE:,} characters."
        )
    said = [
        *_left_out(empty, cells, "pairs with an empty side"),
        *_left_out(long, cells, f"pairs with a side of more than {LONGEST_SENTENCE:,} characters"),
    ]
    return TextTable(
        source=source,
        kind="pairs",
        texts=kept.texts,
        targets=kept.others,
        references=references_of(kept.texts, kept.others, kept.splits),
        splits=None if kept.splits is None else np.array(kept.splits),
        source_name=names[0],
        target_name=names[1],
        num_empty=sum(empty),
        num_too_long=sum(long),
        notes=(*notes, *said),
    )


def labelled_table(source: str, cells: Cells, names: tuple[str, str], notes: Sequence[str]) -> TextTable:
    """Texts that are not empty, of any length."""
    empty = [not text for text in cells.texts]
    kept = _kept(cells, empty)
    if not kept.texts:
        raise MiradaError(f"{source}: all {len(cells.texts)} texts are empty; is {names[0]!r} the column of the texts?")
    labels = encode_text(kept.others, "single-label", source, names[1])
    return TextTable(
        source=source,
        kind="labelled",
        texts=kept.texts,
        labels=labels.targets,
        class_names=labels.class_names,
        splits=None if kept.splits is None else np.array(kept.splits),
        source_name=names[0],
        target_name=names[1],
        num_empty=sum(empty),
        notes=(*notes, *labels.notes, *_left_out(empty, cells, "rows with an empty text")),
    )


def references_of(texts: Sequence[str], targets: Sequence[str], splits: Sequence[str] | None) -> list[tuple[str, ...]]:
    """For every row the different targets of its source, among the rows of its split, in order of appearance."""
    keys = list(zip(texts, splits or [""] * len(texts), strict=True))
    found: dict[tuple[str, str], dict[str, None]] = {}
    for key, target in zip(keys, targets, strict=True):
        found.setdefault(key, {})[target] = None
    shared = {key: tuple(targets_of) for key, targets_of in found.items()}
    return [shared[key] for key in keys]


def _pieces(line: str) -> Iterator[str]:
    """The line, cut after a space where it is too long; joined it is the same again."""
    start = 0
    while len(line) - start > LONGEST_LINE:
        space = line.rfind(" ", start, start + LONGEST_LINE) + 1
        end = space if space > start else start + LONGEST_LINE
        yield line[start:end]
        start = end
    yield line[start:]


def _kept(cells: Cells, is_left_out: Sequence[bool]) -> Cells:
    rows = [row for row, out in enumerate(is_left_out) if not out]
    texts, others, places = ([column[row] for row in rows] for column in cells[:3])
    return Cells(texts, others, places, None if cells.splits is None else [cells.splits[row] for row in rows])


def _left_out(is_left_out: Sequence[bool], cells: Cells, what: str) -> list[str]:
    if not any(is_left_out):
        return []
    return [f"{sum(is_left_out)} {what} are left out (first: {cells.places[is_left_out.index(True)]})."]
