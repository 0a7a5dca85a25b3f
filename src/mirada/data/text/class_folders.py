"""A folder for every class, a text in every file: reviews/good/17.txt, or reviews/train/good/17.txt."""

from __future__ import annotations

from pathlib import Path

from mirada.data.discover import folders_in
from mirada.data.folder import split_folders
from mirada.data.labels import clean_name
from mirada.data.text.encoding import text_of
from mirada.data.text.layout import plain_files, visible_files
from mirada.data.text.rows import Cells

NAMES = "text", "folder"
Found = dict[str, list[tuple[str, list[Path]]]]


def class_folders(folder: Path) -> Found:
    """By split ('' where there are none) the classes and their files; empty unless there are two classes."""
    found = {
        split: [(clean_name(child.name), texts) for child in folders_in(root) if (texts := _texts_in(child))]
        for split, root in split_folders(folder) or [("", folder)]
    }
    classes = {name for named in found.values() for name, _ in named}
    return found if len(classes) > 1 else {}


def read_class_folders(folder: Path, found: Found) -> tuple[Cells, tuple[str, ...]]:
    """Every file of what class_folders found is one text, whatever lines it has."""
    texts: list[str] = []
    classes: list[str] = []
    places: list[str] = []
    splits: list[str] = []
    for split, named in found.items():
        for name, files in named:
            texts += [text_of(file).strip() for file in files]
            classes += [name] * len(files)
            places += [str(file.relative_to(folder)) for file in files]
            splits += [split] * len(files) if split else []
    loose = plain_files(visible_files(folder))
    unused = f", not {', '.join(file.name for file in loose[:5])} beside them" if loose else ""
    note = f"{folder}: {len(texts):,} files are read as texts, and the names of their folders as classes{unused}."
    return Cells(texts, classes, places, splits or None), (note,)


def _texts_in(folder: Path) -> list[Path]:
    return plain_files(visible_files(folder))
