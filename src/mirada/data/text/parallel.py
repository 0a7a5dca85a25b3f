"""Parallel files: line i of one belongs to line i of the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mirada.data.text.encoding import read_text
from mirada.data.text.layout import Part
from mirada.data.text.oddities import is_odd_length
from mirada.data.text.rows import Cells
from mirada.errors import MiradaError


def read_parallel(parts: Sequence[Part]) -> tuple[Cells, tuple[str, str]]:
    """The pairs of all parts, and what the two sides are called."""
    texts: list[str] = []
    others: list[str] = []
    places: list[str] = []
    splits: list[str] = []
    for part in parts:
        assert part.target is not None
        lines, other_lines = _lines(part.file), _lines(part.target)
        if len(lines) != len(other_lines):
            raise MiradaError(_unequal(part.file, part.target, lines, other_lines))
        texts += lines
        others += other_lines
        places += [f"{part.file.name}, line {number}" for number in range(1, len(lines) + 1)]
        splits += [part.split] * len(lines) if part.split else []
    first = parts[0]
    assert first.target is not None
    return Cells(texts, others, places, splits or None), side_names(first.file.name, first.target.name)


def side_names(source: str, target: str) -> tuple[str, str]:
    """The one word in which two file names differ: 'en' and 'es' of 'train.en' and 'train.es'."""
    words, others = ([word for word in re.split(r"[\W_]+", name) if word] for name in (source, target))
    different = [(a, b) for a, b in zip(words, others, strict=False) if a != b]
    return different[0] if len(words) == len(others) and len(different) == 1 else ("source", "target")


def _lines(path: Path) -> list[str]:
    """Without the blank lines that the file may end in."""
    return [line.strip() for line in read_text(path).rstrip().split("\n")]


def _unequal(file: Path, target: Path, lines: list[str], others: list[str]) -> str:
    odd = next((n for n, pair in enumerate(zip(lines, others, strict=False), start=1) if is_odd_length(*pair)), None)
    first = f"they seem to part at line {odd}" if odd else "look for a line that is broken in two in one of them"
    return (
        f"{file} has {len(lines):,} lines and {target.name} has {len(others):,}, expected the same number, "
        f"since line by line they belong together; {first}."
    )
