"""CSV, TSV and Parquet tables of image paths and labels."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mirada.data.discover import find_images, is_image_name
from mirada.data.labels import Labels, encode_columns, encode_text
from mirada.data.packed import schema_of
from mirada.data.table import ImageTable, Task, canonical_split
from mirada.errors import MiradaError

EXTENSIONS = (".csv", ".tsv", ".parquet")
PATH_NAMES = ("path", "file", "filename", "file_name", "image", "image_path", "filepath", "img", "image_id", "id")
LABEL_NAMES = ("label", "class", "target", "y", "category", "labels", "class_name", "tags")
SPLIT_NAMES = ("split", "set", "subset", "fold", "partition")
GROUP_NAMES = ("group", "groups", "patient", "patient_id", "subject", "site")

Columns = dict[str, list[str]]


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns to use; what is None is inferred."""

    path: str | None = None
    label: str | Sequence[str] | None = None
    split: str | None = None
    group: str | None = None


def is_table(path: Path) -> bool:
    return path.suffix.lower() in EXTENSIONS


def read_tables(
    files: Sequence[Path], choice: ColumnChoice, task: Task | None, image_root: Path | None, source: str
) -> ImageTable:
    """One table, or several that are each named after a split (train.csv, test.csv)."""
    columns = _concatenate(files)
    where = files[0].name
    path_column = find_column(columns, choice.path, PATH_NAMES, "path", where) or _column_of_paths(columns, where)
    split_column = find_column(columns, choice.split, SPLIT_NAMES, "split", where)
    group_column = find_column(columns, choice.group, GROUP_NAMES, "group", where)
    splits = read_splits(columns[split_column], where, required=choice.split is not None) if split_column else None
    used = [path_column, group_column, split_column if splits is not None else None]
    labels = _read_labels(columns, choice.label, used, task, where)
    paths, note = _resolve(columns[path_column], image_root or files[0].parent, where)
    groups = np.unique(columns[group_column], return_inverse=True)[1] if group_column else None
    return ImageTable(
        source=source,
        kind="table",
        task=labels.task,
        targets=labels.targets,
        class_names=labels.class_names,
        target_names=labels.target_names,
        paths=paths,
        splits=splits,
        groups=groups,
        notes=labels.notes + note,
    )


def read_columns(path: Path) -> Columns:
    """A table file as text columns."""
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    text = _read_text(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _guess_delimiter(text)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    if not rows:
        raise MiradaError(f"{path}: the table is empty, expected a header and rows of image paths and labels.")
    header = [name.strip() for name in rows[0]]
    if any(is_image_name(cell) for cell in header):  # no header: the first row is already an image
        header, rows = [f"column{i + 1}" for i in range(len(header))], [[], *rows]
    if len(set(header)) < len(header):
        raise MiradaError(f"{path}: two columns have the same name in {header}; rename one.")
    if len(rows) < 2:
        raise MiradaError(f"{path}: the table has a header but no rows.")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise MiradaError(f"{path}: row {number} has {len(row)} cells, expected {len(header)} as in the header.")
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(header)}


def read_header(path: Path) -> list[str]:
    """The names of the columns of a table file."""
    if path.suffix.lower() == ".parquet":
        return list(schema_of(path).names)
    text = _read_text(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _guess_delimiter(text)
    return [name.strip() for name in next(csv.reader(io.StringIO(text.lstrip()), delimiter=delimiter), [])]


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise MiradaError(f"{path}: the table cannot be read ({error.strerror}).") from None
    if b"\0" in raw[:4096]:
        raise MiradaError(f"{path}: this is not a text table (it contains binary data); save it as CSV.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")  # what spreadsheets on Windows write


def _guess_delimiter(text: str) -> str:
    header = text.lstrip().split("\n", 1)[0]
    return max(",;\t|", key=header.count)


def _read_parquet(path: Path) -> Columns:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MiradaError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow, or save as CSV.") from None
    try:
        table = pyarrow.parquet.read_table(path).to_pydict()
    except Exception as error:
        raise MiradaError(f"{path}: not a readable Parquet file ({error}).") from None
    return {name: [cell_text(value) for value in column] for name, column in table.items()}


def cell_text(value) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ";".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _concatenate(files: Sequence[Path]) -> Columns:
    tables = [read_columns(file) for file in files]
    if len(files) == 1:
        return tables[0]
    for file, table in zip(files, tables, strict=True):
        if list(table) != list(tables[0]):
            raise MiradaError(f"{file}: its columns {list(table)} differ from {list(tables[0])} in {files[0].name}.")
    for file, table in zip(files, tables, strict=True):
        table["split"] = [canonical_split(file.stem) or ""] * len(next(iter(table.values())))
    return {name: [cell for table in tables for cell in table[name]] for name in tables[0]}


def find_column(
    columns: Columns | list[str], given: str | None, known: tuple[str, ...], role: str, where: str
) -> str | None:
    """The column that was given, which must exist, or the one with the first of the known names."""
    if given is not None:
        if given not in columns:
            raise MiradaError(f"{where}: there is no column {given!r} ({role}); the columns are {', '.join(columns)}.")
        return given
    lower = {name.lower().replace(" ", "_"): name for name in reversed(columns)}
    return next((lower[name] for name in known if name in lower), None)


def _column_of_paths(columns: Columns, where: str) -> str:
    for name, cells in columns.items():
        if all(is_image_name(cell) for cell in cells):
            return name
    raise MiradaError(
        f"{where}: no column of image paths among {', '.join(columns)}; "
        f"name it one of {', '.join(PATH_NAMES[:5])}, or say which one it is."
    )


def _read_labels(
    columns: Columns, given: str | Sequence[str] | None, used: list[str | None], task: Task | None, where: str
) -> Labels:
    if given is not None and not isinstance(given, str):
        for wanted in given:
            find_column(columns, wanted, (), "label", where)
        return encode_columns(given, [columns[name] for name in given], task, where)
    free = {name: cells for name, cells in columns.items() if name not in used}
    name = find_column(columns if given else free, given, LABEL_NAMES, "label", where)
    if name is None and len(free) == 1:
        name = next(iter(free))
    if name is not None:
        return encode_text(columns[name], task, where, name)
    if len(free) > 1 and all(cell in ("0", "1", "0.0", "1.0") for cells in free.values() for cell in cells):
        return encode_columns(list(free), list(free.values()), task, where)
    raise MiradaError(
        f"{where}: no label column among {', '.join(columns)}; "
        f"name it one of {', '.join(LABEL_NAMES[:4])}, or say which one it is."
    )


def read_splits(cells: list[str], where: str, required: bool) -> np.ndarray | None:
    """A column may be called 'fold' and hold something else: then it is a split only if the user said so."""
    splits = [canonical_split(cell) for cell in cells]
    if None not in splits:
        return np.array(splits)
    if not required:
        return None
    row = splits.index(None)
    raise MiradaError(f"{where}: split {cells[row]!r} in row {row + 1}, expected train, val or test.")


def _resolve(cells: list[str], root: Path, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths relative to the table; a bare name (with or without extension) is looked up below the root."""
    if "" in cells:
        raise MiradaError(f"{where}: row {cells.index('') + 1} has an empty path; fill it in or remove the row.")
    resolved: list[str] = []
    missing: list[int] = []
    index: dict[str, list[Path]] | None = None
    for row, cell in enumerate(cells):
        path = root / cell.replace("\\", "/")
        if not (is_image_name(path.name) and os.path.exists(path)):
            index = _index_names(root) if index is None else index
            candidates = index.get(path.name, [])
            if len(candidates) == 1:
                path = candidates[0]
            elif not os.path.exists(path):
                missing.append(row)
        resolved.append(str(path))
    if not missing:
        return tuple(resolved), ()
    first = f"first: {cells[missing[0]]!r}, row {missing[0] + 1}"
    if len(missing) == len(cells):
        raise MiradaError(f"{where}: none of its {len(cells)} images exists below {root} ({first}); check the paths.")
    return tuple(resolved), (f"{where}: {len(missing)} of {len(cells)} images do not exist ({first}).",)


def _index_names(root: Path) -> dict[str, list[Path]]:
    index: dict[str, list[Path]] = {}
    for path in find_images(root) if root.is_dir() else ():
        index.setdefault(path.name, []).append(path)
        index.setdefault(path.stem, []).append(path)
    return index
