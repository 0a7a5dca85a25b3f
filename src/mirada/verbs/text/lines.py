"""Texts that are given as themselves, or in files: a text per line, or a column of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mirada.data.text.columns import TextColumns, find_roles
from mirada.data.text.encoding import read_text, sound
from mirada.data.text.layout import TABLES, TEXTS
from mirada.data.text.records import ending, read_records
from mirada.errors import MiradaError

_EXPECTED = "this model was trained on text; give a sentence, a file of texts, or a list of these"


class Texts(list[str]):
    """Texts as they are: none of them is read as the name of a file."""


def lines_of(file: str | Path) -> list[str]:
    """The lines of a text file, which a line end ends and nothing else."""
    return read_text(Path(file)).removesuffix("\n").split("\n")


def texts_of(given: object) -> Texts:
    """Texts themselves, those of files, or a mix of both; what was read from a file is never a file's name."""
    if isinstance(given, Texts):
        texts = given
    else:
        words = [given] if isinstance(given, str | os.PathLike) else _listed(given)
        texts = Texts(sound(text) for word in words for text in _texts_of_one(word))
    if not texts:
        raise MiradaError("no texts are given; give at least one.")
    return texts


def _listed(given: object) -> list:
    if not isinstance(given, Iterable):
        raise MiradaError(f"{_EXPECTED}, not {type(given).__name__}.")
    return list(given)


def _texts_of_one(word: object) -> list[str]:
    if not isinstance(word, str | os.PathLike):
        raise MiradaError(f"{_EXPECTED}, not {type(word).__name__}.")
    if isinstance(word, str) and not _names_file(word):
        return [word]
    path = Path(word)
    if not os.path.exists(path):
        raise MiradaError(f"{path}: there is no such file; correct its name, or give the text in a .txt file.")
    if path.is_file() and ending(path) in TEXTS:
        return lines_of(path)
    if path.is_file() and ending(path) in TABLES:
        return _column_of(path)
    raise MiradaError(f"{path}: is not a file of texts; give one that ends in {', '.join((*TEXTS, *TABLES))}.")


def _names_file(word: str) -> bool:
    """A sentence may name a file of texts that is there; a single word any file, or one of texts that is missing."""
    has_ending = ending(Path(word)) in (*TEXTS, *TABLES)
    if len(word.split()) != 1:
        return has_ending and os.path.isfile(word)
    return has_ending or os.path.isfile(word) or (os.sep in word and os.path.isdir(word))


def _column_of(path: Path) -> list[str]:
    """The texts of a table, whatever else is in it."""
    columns = read_records(path).columns
    if len(columns) == 1:
        return next(iter(columns.values()))
    try:
        return columns[find_roles(columns, TextColumns(), "fill", path.name).text]
    except MiradaError:
        raise MiradaError(
            f"{path}: cannot tell which of its columns ({', '.join(columns)}) holds the texts; call it text in the "
            "first row, or give a .txt file with a text per line."
        ) from None
