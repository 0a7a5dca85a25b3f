"""Open whatever holds the images: the kind of source is inferred from what is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mirada.data.arrays import read_npz
from mirada.data.discover import folders_in, has_images, images_directly_in
from mirada.data.folder import read_folder, read_named_files
from mirada.data.hugging_face import holds_images, read_shards
from mirada.data.idx import is_idx, read_idx_folder
from mirada.data.labels import check_task
from mirada.data.samples import SAMPLES, read_sample
from mirada.data.shards import find_shards
from mirada.data.table import SPLIT_NAMES, ImageTable, Task, canonical_split
from mirada.data.tabular import ColumnChoice, is_table, read_tables
from mirada.errors import MiradaError

_TABLE_STEMS = ("labels", "label", "metadata", "annotations", "index")


def open_source(
    source: str | os.PathLike,
    *,
    task: Task | None = None,
    path_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    split_column: str | None = None,
    group_column: str | None = None,
    image_root: str | os.PathLike | None = None,
    label_pattern: str | None = None,
    class_names: Sequence[str] | None = None,
) -> ImageTable:
    """Read a source of labelled images; what is not given is inferred.

    source: a folder per class (also below train/val/test), a folder with a table of labels,
            a .csv, .tsv or .parquet table, a data set of Hugging Face (save_to_disk, or Parquet with images inside),
            an .npz archive, a folder of IDX files, 'digits' or 'photos'.
    label_column: several 0/1 columns make a multi-label task; a cell may also hold 'cat;dog' or 'cat|dog'.
    image_root: where relative paths of a table start, by default the table's own folder.
    label_pattern: reads the class from the file name, e.g. '(.+)_[0-9]+'.
    class_names: names for numeric labels 0, 1, ... of .npz and IDX.
    """
    check_task(task)
    name, path = os.fspath(source), Path(source)
    choice = ColumnChoice(path_column, label_column, split_column, group_column)
    root = None if image_root is None else Path(image_root)
    if root is not None and not root.is_dir():
        raise MiradaError(f"image_root {root}: there is no such folder.")
    if not path.exists():
        if name in SAMPLES:
            return _with_task(read_sample(name), task)
        raise MiradaError(f"{name}: no such file or folder, nor a sample set ({', '.join(SAMPLES)}).")
    if label_pattern is not None:
        _require_folder(path, "label_pattern")
        return _with_task(read_named_files(path, label_pattern, name), task)
    shards = find_shards(path, holds_images)
    if shards:
        if root is not None:
            raise MiradaError(f"{name}: its images are inside its files, so image_root has no meaning; leave it out.")
        return read_shards(shards, choice, task, name)
    tables = [path] if path.is_file() and is_table(path) else _tables_in(path, choice)
    if tables:
        return read_tables(tables, choice, task, root, name)
    if choice != ColumnChoice() or root is not None:
        raise MiradaError(f"{name}: columns and image_root are for CSV, TSV or Parquet tables, and there is none here.")
    if path.suffix.lower() == ".npz":
        return read_npz(path, class_names, task, name)
    if path.is_file() and is_idx(path):
        return read_idx_folder(path.parent, class_names, task, name)
    if path.is_file():
        raise MiradaError(
            f"{name}: cannot read {path.suffix or 'this'} files; expected a folder, .csv, .tsv, .parquet or .npz."
        )
    if any(map(is_idx, path.iterdir())):
        return read_idx_folder(path, class_names, task, name)
    return _with_task(read_folder(path, name), task)


def _tables_in(folder: Path, choice: ColumnChoice) -> list[Path]:
    """The labels table of a folder, if labels do not come from class folders."""
    if not folder.is_dir():
        return []
    tables = sorted(child for child in folder.iterdir() if child.is_file() and is_table(child) and child.name[0] != ".")
    named = [table for table in tables if table.stem.lower() in _TABLE_STEMS]
    by_split = [table for split in SPLIT_NAMES for table in tables if canonical_split(table.stem) == split]
    flat = bool(images_directly_in(folder)) or sum(map(has_images, folders_in(folder))) == 1
    if named:
        return named[:1]
    if len(by_split) > 1 and len({table.suffix for table in by_split}) == 1:
        return by_split
    if not tables or not (flat or choice != ColumnChoice()):
        return []
    if len(tables) > 1:
        raise MiradaError(
            f"{folder}: several tables ({', '.join(t.name for t in tables)}); give the one with the labels."
        )
    return tables


def _require_folder(path: Path, option: str) -> None:
    if not path.is_dir():
        raise MiradaError(f"{path}: {option} is for folders of images.")


def _with_task(table: ImageTable, task: Task | None) -> ImageTable:
    if task not in (None, table.task):
        raise MiradaError(
            f"{table.source}: holds one class per image, so the task cannot be {task}; use a table of labels."
        )
    return table
