"""The one shape every source of text is read into: a table with one row per line, pair or labelled text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

Kind = Literal["plain", "pairs", "labelled"]
KIND_OF_TASK: dict[str, Kind] = {
    "translate": "pairs",
    "classify": "labelled",
    "generate": "plain",
    "fill": "plain",
    "embed": "plain",
}


@dataclass(frozen=True, eq=False)
class TextTable:
    r"""Texts, what belongs to each of them, and what was decided while reading.

    plain      the lines of the files with their "\n": "".join(texts) is one stream to generate from, the rows that are
               not blank are the lines to fill in; a line over `rows.LONGEST_LINE` characters is several rows.
    pairs      texts[i] is to become targets[i]; references[i] are all targets that the same source has on its side.
    labelled   texts[i] belongs to class_names[labels[i]].
    """

    source: str
    kind: Kind
    texts: list[str]
    targets: list[str] | None = None
    references: list[tuple[str, ...]] | None = None
    labels: np.ndarray | None = None  # (N,) int64
    class_names: tuple[str, ...] = ()
    splits: np.ndarray | None = None  # (N,) of 'train' | 'val' | 'test', when the source gives them
    source_name: str = "text"  # what the two sides of a pair are called: 'en', 'es'
    target_name: str = ""
    num_empty: int = 0  # rows of the files that were left out because a text in them is empty
    num_too_long: int = 0  # ... or is too long to be a sentence
    notes: tuple[str, ...] = ()  # what was decided while reading, in plain sentences

    def __post_init__(self):
        assert (self.targets is not None) == (self.references is not None) == (self.kind == "pairs")
        assert (self.labels is not None) == (self.kind == "labelled")
        for column in (self.targets, self.references, self.labels, self.splits):
            assert column is None or len(column) == len(self)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def sides(self) -> dict[str, list[str]]:
        """The text columns by name: one, or the two of pairs."""
        return {self.source_name: self.texts} | ({} if self.targets is None else {self.target_name: self.targets})

    def name(self, row: int) -> str:
        """What to call this row in a message or a results file."""
        return f"{Path(self.source).name}[{row}]"

    def class_counts(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Texts per class, over all rows or some."""
        assert self.labels is not None
        labels = self.labels if rows is None else self.labels[rows]
        return np.bincount(labels, minlength=len(self.class_names))

    def first_of_each_source(self, rows: np.ndarray) -> np.ndarray:
        """Of these rows the first with each source sentence: what to translate once, against all its references."""
        first: dict[str, int] = {}
        for row in rows.tolist():
            first.setdefault(self.texts[row], row)
        return np.array(list(first.values()), dtype=np.int64)

    def subset(self, rows: np.ndarray) -> TextTable:
        """The same table with only these rows, in this order; references stay those of the whole table."""
        rows = np.asarray(rows, dtype=np.int64)
        chosen = rows.tolist()
        return replace(
            self,
            texts=[self.texts[row] for row in chosen],
            targets=None if self.targets is None else [self.targets[row] for row in chosen],
            references=None if self.references is None else [self.references[row] for row in chosen],
            labels=None if self.labels is None else self.labels[rows],
            splits=None if self.splits is None else self.splits[rows],
        )

    def checksum(self) -> str:
        """SHA-256 of the texts and of what belongs to them; not of where they lie or how they are split."""
        digest = hashlib.sha256(repr((self.kind, self.source_name, self.target_name, self.class_names)).encode())
        for column in self.sides.values():
            for text in column:
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        if self.labels is not None:
            digest.update(self.labels.astype("<i8").tobytes())
        return digest.hexdigest()
