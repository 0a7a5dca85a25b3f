"""Data sets of Hugging Face: images as bytes in Arrow or Parquet files, which also name the classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mirada.data.labels import Labels, clean_name, encode_array, encode_columns, encode_text
from mirada.data.packed import address, num_rows, read_values, schema_of
from mirada.data.shards import Shard, missing_shards
from mirada.data.table import ImageTable, Task, canonical_split
from mirada.data.tabular import (
    GROUP_NAMES,
    LABEL_NAMES,
    SPLIT_NAMES,
    ColumnChoice,
    cell_text,
    find_column,
    read_splits,
)
from mirada.errors import MiradaError

SEQUENCES = ("Sequence", "List", "LargeList")
UNLABELLED = -1  # what `datasets` writes for a class that is not told


def read_shards(shards: Sequence[Shard], choice: ColumnChoice, task: Task | None, source: str) -> ImageTable:
    """One table of all files; rows without a label are left out, and that is said."""
    training = [shard for shard in shards if canonical_split(shard.split) == "train"]
    columns = _choose_columns((training or shards)[0].file, choice)
    parts = [part for shard in shards if (part := _read_part(shard, columns)) is not None]
    unlabelled = _unlabelled_notes(shards, parts)
    if not any(len(part.rows) for part in parts):
        raise MiradaError(f"{source}: no image has a label in {' or '.join(columns.labels)}; expected at least some.")
    labels = _encode(parts, columns, task, Path(source).name)
    splits = _splits(parts, columns, source, required=choice.split is not None)
    groups = [cell_text(cell) for part in parts for cell in part.cells(columns.group)] if columns.group else None
    return ImageTable(
        source=source,
        kind="table",
        task=labels.task,
        targets=labels.targets,
        class_names=labels.class_names,
        target_names=labels.target_names,
        paths=tuple(address(part.shard.file, row, columns.image) for part in parts for row in part.rows),
        splits=splits,
        groups=None if groups is None else np.unique(groups, return_inverse=True)[1],
        notes=(*labels.notes, *unlabelled, *missing_shards(list(shards))),
    )


def holds_images(file: Path) -> bool:
    """Whether a file can be read and has a column of images."""
    try:
        return bool(_image_columns(file))
    except MiradaError:
        return False


@dataclass(frozen=True)
class _Columns:
    image: str
    labels: tuple[str, ...]
    class_names: tuple[str, ...] | None  # of the one label column, where they are written
    split: str | None
    group: str | None

    @property
    def values(self) -> list[str]:
        return [*self.labels, *filter(None, (self.split, self.group))]


@dataclass(frozen=True)
class _Part:
    """The labelled rows of one file."""

    shard: Shard
    num_rows: int
    rows: list[int]
    values: dict[str, list[Any]]

    def cells(self, column: str) -> list[Any]:
        return [self.values[column][row] for row in self.rows]


def _choose_columns(file: Path, choice: ColumnChoice) -> _Columns:
    names = schema_of(file).names
    find_column(names, choice.path, (), "image", file.name)
    images = [choice.path] if choice.path else _image_columns(file)
    if not images:
        raise MiradaError(f"{file}: no column of images among {', '.join(names)}; expected cells with bytes.")
    if len(images) > 1:
        raise MiradaError(
            f"{file}: several columns of images ({', '.join(images)}); say which with data.path_column={images[0]}."
        )
    split = find_column(names, choice.split, SPLIT_NAMES, "split", file.name)
    group = find_column(names, choice.group, GROUP_NAMES, "group", file.name)
    used = {*_image_columns(file), *images, split, group}
    labels = _choose_labels(file, choice.label, [name for name in names if name not in used])
    class_names = _class_names(features_of(file).get(labels[0])) if len(labels) == 1 else None
    return _Columns(images[0], labels, class_names, split, group)


def _choose_labels(file: Path, given: str | Sequence[str] | None, free: list[str]) -> tuple[str, ...]:
    if given is not None:
        wanted = (given,) if isinstance(given, str) else tuple(given)
        for name in wanted:
            find_column(schema_of(file).names, name, (), "label", file.name)
        return wanted
    named = find_column(free, None, LABEL_NAMES, "label", file.name)
    features = features_of(file)
    classes = [name for name in free if _class_names(features.get(name)) is not None]
    if named is not None:
        return (named,)
    if len(classes) > 1:
        raise MiradaError(
            f"{file}: several columns of classes ({', '.join(classes)}); say which with data.label_column={classes[0]}."
        )
    if classes or len(free) == 1:
        return tuple(classes or free)
    raise MiradaError(
        f"{file}: no column of labels among {', '.join(schema_of(file).names)}; "
        f"name it one of {', '.join(LABEL_NAMES[:4])}, or say which one it is with data.label_column."
    )


def features_of(file: Path) -> dict[str, Any]:
    """What `datasets` knows of each column: written in the file, else in dataset_info.json beside it."""
    written = (schema_of(file).metadata or {}).get(b"huggingface")
    beside = file.parent / "dataset_info.json"
    try:
        if written is not None:
            return json.loads(written)["info"]["features"] or {}
        return json.loads(beside.read_text("utf-8")).get("features") or {} if beside.exists() else {}
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        raise MiradaError(f"{file}: what is written about its columns cannot be read; save it anew.") from None


def _image_columns(file: Path) -> list[str]:
    """Columns that are said to be images or, where nothing is said, that hold bytes."""
    schema, features, found = schema_of(file), features_of(file), []
    import pyarrow.types as types

    for field in schema:
        kind = field.type
        if types.is_struct(kind):
            kind = kind.field("bytes").type if kind.get_field_index("bytes") >= 0 else kind
        holds_bytes = types.is_binary(kind) or types.is_large_binary(kind)
        if holds_bytes and _type_of(features.get(field.name)) in ("Image", "Value", None):
            found.append(field.name)
    said = [name for name in found if _type_of(features.get(name)) == "Image"]
    return said or found


def _type_of(feature: Any) -> str | None:
    return feature.get("_type") if isinstance(feature, dict) else None


def _class_names(feature: Any) -> tuple[str, ...] | None:
    """The names of a ClassLabel, or of those in a sequence."""
    if isinstance(feature, list) and len(feature) == 1:  # how `datasets` once wrote a sequence
        return _class_names(feature[0])
    if _type_of(feature) in SEQUENCES:
        return _class_names(feature.get("feature"))
    if _type_of(feature) != "ClassLabel":
        return None
    names = feature.get("names") or range(feature.get("num_classes") or 0)
    return tuple(clean_name(str(name)) for name in names)


def _read_part(shard: Shard, columns: _Columns) -> _Part | None:
    """None if the file has no labels at all."""
    names = schema_of(shard.file).names
    if any(name not in names for name in columns.labels):
        return None
    absent = [name for name in (columns.image, *columns.values) if name not in names]
    if absent:
        raise MiradaError(f"{shard.file}: has no column {absent[0]!r}, which other files have; expected the same.")
    theirs = _class_names(features_of(shard.file).get(columns.labels[0])) if len(columns.labels) == 1 else None
    if theirs != columns.class_names:
        raise MiradaError(f"{shard.file}: its classes differ from those of the other files; expected the same names.")
    values = read_values(shard.file, columns.values)
    count = num_rows(shard.file)
    hidden = UNLABELLED if columns.class_names is not None else None
    rows = [row for row in range(count) if all(values[name][row] not in (None, hidden) for name in columns.labels)]
    return _Part(shard, count, rows, values)


def _unlabelled_notes(shards: Sequence[Shard], parts: Sequence[_Part]) -> list[str]:
    counts: dict[str, int] = {}
    read = {part.shard: part for part in parts}
    for shard in shards:
        left_out = read[shard].num_rows - len(read[shard].rows) if shard in read else num_rows(shard.file)
        counts[shard.split] = counts.get(shard.split, 0) + left_out
    return [
        f"{split or 'the data'}: {count} images without a label were left out."
        for split, count in counts.items()
        if count
    ]


def _encode(parts: Sequence[_Part], columns: _Columns, task: Task | None, where: str) -> Labels:
    cells = {name: [cell for part in parts for cell in part.cells(name)] for name in columns.labels}
    if len(cells) > 1:
        texts = [[cell_text(cell) for cell in column] for column in cells.values()]
        return encode_columns(list(cells), texts, task, where)
    (name, column), names = next(iter(cells.items())), columns.class_names
    if names is None:
        return encode_text([cell_text(cell) for cell in column], task, where, name)
    if isinstance(column[0], list):
        return _encode_sets(column, names, task, f"{where}[{name}]")
    if task == "multi-label":
        raise MiradaError(f"{where}: column {name!r} holds one class per image, so the task cannot be multi-label.")
    return encode_array(np.array(column), None if task == "regression" else names, task, f"{where}[{name}]")


def _encode_sets(column: list[list[int]], names: tuple[str, ...], task: Task | None, where: str) -> Labels:
    if task not in (None, "multi-label"):
        raise MiradaError(f"{where}: holds several classes per image, so the task cannot be {task}.")
    targets = np.zeros((len(column), len(names)), np.float32)
    for row, numbers in enumerate(column):
        if any(number is None or not 0 <= number < len(names) for number in numbers):
            raise MiradaError(f"{where}: row {row + 1} has {numbers}, expected numbers below {len(names)}.")
        targets[row, numbers] = 1
    return Labels("multi-label", targets, names)


def _splits(parts: Sequence[_Part], columns: _Columns, source: str, required: bool) -> np.ndarray | None:
    """As the files are called, or as a column says: the one that was given, or the only one that tells."""
    labelled = [part for part in parts if part.rows]
    names = {part.shard.split: canonical_split(part.shard.split) for part in labelled}
    if columns.split is not None and (required or len(names) == 1):
        cells = [cell_text(cell) for part in parts for cell in part.cells(columns.split)]
        return read_splits(cells, source, required)
    if len(names) == 1:
        return None
    unknown = [name for name, split in names.items() if split is None]
    if unknown:
        raise MiradaError(
            f"{source}: the split {unknown[0]!r} is neither train, validation nor test; "
            "rename it, take it out, or give the folder or file of one split."
        )
    return np.array([names[part.shard.split] for part in labelled for _ in part.rows])
