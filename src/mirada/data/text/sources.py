"""Open whatever holds text: plain text, pairs of sentences or labelled texts, inferred from what is there."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from mirada.data.discover import has_images
from mirada.data.hugging_face import holds_images
from mirada.data.idx import is_idx
from mirada.data.tabular import read_splits
from mirada.data.text.class_folders import NAMES, class_folders, read_class_folders
from mirada.data.text.column_names import languages_in
from mirada.data.text.columns import Roles, TextColumns, find_roles, looks_like_text
from mirada.data.text.encoding import read_text
from mirada.data.text.layout import (
    TABLES,
    TEXTS,
    Layout,
    counterparts,
    layout_of_file,
    layout_of_folder,
    layout_of_parallel,
    plain_files,
    visible_files,
)
from mirada.data.text.parallel import read_parallel
from mirada.data.text.records import Records, ending, peek_records, read_records
from mirada.data.text.rows import Cells, labelled_table, pairs_table, plain_table
from mirada.data.text.table import KIND_OF_TASK, TextTable
from mirada.errors import MiradaError, nearest

_OTHER_DATA = (".npz", ".arrow", ".npy")


def is_text(source: str | os.PathLike) -> bool:
    """Whether this is to be read as text; looks at names and at the first rows of tables."""
    path = Path(source)
    if path.is_file():
        return ending(path) in TEXTS or bool(counterparts(path)) or (ending(path) in TABLES and _is_text_table(path))
    if not path.is_dir():
        return False
    files = visible_files(path)
    if any(file.suffix in _OTHER_DATA or is_idx(file) or file.name.startswith("ind.") for file in files):
        return False
    found = plain_files(files) or any(map(counterparts, files))
    tables = (file for file in files if ending(file) in TABLES)
    return not has_images(path) and bool(found or any(map(_is_text_table, tables)) or class_folders(path))


def open_text(
    source: str | os.PathLike,
    *,
    task: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    target: str | os.PathLike | None = None,
) -> TextTable:
    """Read a source of text; what is not given is inferred, and noted.

    source: plain text (.txt, .md, or a folder of them), a table of two texts or of a text and a label (.tsv, .csv,
            .jsonl, .parquet), one of two parallel files, a folder of one of these, or a folder with a folder of .txt
            files for every class; .gz too, but for Parquet.
            Of files named after splits (train, dev, test) the training file, or the folder, stands for all.
    task:   'translate', 'classify', 'generate', 'fill' or 'embed': decides where the files leave it open.
    target: the other one of two parallel files: its path, or how its name ends ('es').
    """
    if task is not None and task not in KIND_OF_TASK:
        raise MiradaError(f"task is {task!r}{nearest(task, KIND_OF_TASK)}, expected one of {', '.join(KIND_OF_TASK)}.")
    name, path = os.fspath(source), Path(source)
    choice = TextColumns(source_column, target_column, text_column, label_column, split_column)
    if not path.exists():
        raise MiradaError(f"{name}: no such file or folder.")
    if target is not None:
        if choice.given or task not in (None, "translate"):
            raise MiradaError(f"{name}: target is for parallel files to translate, without columns; leave one out.")
        layout = layout_of_parallel(path, os.fspath(target))
    elif path.is_dir() and not choice.given and task in (None, "classify") and (found := class_folders(path)):
        cells, notes = read_class_folders(path, found)
        return labelled_table(name, cells, NAMES, notes)
    elif path.is_dir():
        layout = layout_of_folder(path, task)
    else:
        layout = layout_of_file(path, task, is_alone=split_column is not None)
    if layout.kind == "table":
        return _from_tables(name, layout, choice, task)
    if choice.given:
        raise MiradaError(f"{name}: columns are for tables ({', '.join(TABLES)}), and this is {layout.kind} text.")
    if layout.kind == "parallel":
        _require_kind(name, task, "pairs")
        cells, names = read_parallel(layout.parts)
        return pairs_table(name, cells, names, layout.notes)
    _require_kind(name, task, "plain")
    splits = [part.split or "" for part in layout.parts] if layout.has_splits else None
    return plain_table(name, [read_text(part.file) for part in layout.parts], splits, layout.notes)


def _from_tables(name: str, layout: Layout, choice: TextColumns, task: str | None) -> TextTable:
    files = [part.file for part in layout.parts]
    tables = [read_records(file, list(choice.given.values())) for file in files]
    for file, table in zip(files, tables, strict=True):
        if list(table.columns) != list(tables[0].columns):
            theirs, ours = ", ".join(table.columns), ", ".join(tables[0].columns)
            raise MiradaError(f"{file}: its columns are {theirs}, expected {ours} as in {files[0].name}.")
    columns = {column: [cell for table in tables for cell in table.columns[column]] for column in tables[0].columns}
    roles = find_roles(columns, choice, task, files[0].name)
    splits = _splits(layout, tables, columns, roles, choice, files[0].name)
    notes = (*layout.notes, *tables[0].notes, *roles.notes)
    if roles.other is None:
        how = f"{files[0].name}: each text of the column {roles.text} is read as a line of its own."
        return plain_table(name, columns[roles.text], splits, (*notes, how))
    places = [f"{f.name}, line {n}" for f, table in zip(files, tables, strict=True) for n in table.lines]
    cells = Cells(columns[roles.text], columns[roles.other], places, splits)
    if roles.kind == "labelled":
        how = f"{files[0].name}: read as texts ({roles.text}) with labels ({roles.other})."
        return labelled_table(name, cells, (roles.text, roles.other), (*notes, how))
    names = _side_names(files[0].name, roles)
    how = f"{files[0].name}: read as pairs, from {names[0]} to {names[1]}."
    return pairs_table(name, cells, names, (*notes, how))


def _splits(
    layout: Layout, tables: Sequence[Records], columns: dict, roles: Roles, choice: TextColumns, where: str
) -> list[str] | None:
    if layout.has_splits:
        return [part.split or "" for part, table in zip(layout.parts, tables, strict=True) for _ in table.lines]
    if roles.split is None:
        return None
    found = read_splits(columns[roles.split], where, required=choice.split is not None)
    return None if found is None else found.tolist()


def _side_names(file_name: str, roles: Roles) -> tuple[str, str]:
    """Columns without names are called by the languages in the name of the file."""
    assert roles.other is not None
    if not re.fullmatch(r"column\d+", roles.text):
        return roles.text, roles.other
    return languages_in(file_name) or ("source", "target")


def _require_kind(name: str, task: str | None, kind: str) -> None:
    if task is not None and KIND_OF_TASK[task] != kind:
        wanted = "a text and a label" if task == "classify" else "two texts, or two parallel files by target"
        raise MiradaError(f"{name}: holds {kind} text, which cannot be used to {task}; expected a table of {wanted}.")


def _is_text_table(path: Path) -> bool:
    if ending(path) == ".parquet" and holds_images(path):
        return False
    records = peek_records(path)
    return records is not None and looks_like_text(records.columns)
