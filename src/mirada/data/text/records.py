"""Tables of text as named columns: TSV, CSV, JSON lines and Parquet.

.tsv     a tab ends a cell, a line ends a row, a quotation mark is a character like any other
.csv     cells in quotation marks may hold the separator (, ; tab |) and line ends
.jsonl   an object per line; the object in "translation" counts as columns of its own
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirada.data.hugging_face import features_of
from mirada.data.packed import read_values, schema_of
from mirada.data.tabular import cell_text
from mirada.data.text.column_names import is_header
from mirada.data.text.encoding import is_gzip_name, peek_text, read_text, sound
from mirada.errors import MiradaError

NESTED = "translation"  # {"translation": {"en": …, "es": …}}, the layout of Hugging Face
SEPARATORS = ",;\t|"

Columns = dict[str, list[str]]
Row = tuple[int, list[str]]  # the line where it begins, and its cells


@dataclass(frozen=True)
class Records:
    """The cells of a table by column, stripped, and the line of its file where each row begins."""

    columns: Columns
    lines: list[int]
    notes: tuple[str, ...] = ()


def ending(path: Path) -> str:
    """'.tsv' of 'Pairs.TSV.gz'."""
    return Path(path.stem if is_gzip_name(path) else path.name).suffix.lower()


def read_records(path: Path, wanted: Sequence[str] = ()) -> Records:
    """A whole table; `wanted` are column names that the user gave, which tell a header from a first row."""
    if ending(path) == ".parquet":
        return _from_objects(_parquet_objects(path), path)
    return _parsed(read_text(path), path, wanted)


def peek_records(path: Path) -> Records | None:
    """The first rows of a table (of Parquet only the names of its columns of text), or None if it is not readable."""
    try:
        if ending(path) == ".parquet":
            return Records({name: [] for name in _parquet_texts(path)}, [])
        text = peek_text(path)
        return _parsed(text, path, (), is_cut=True) if text and text.strip() else None
    except MiradaError:
        return None


def _parsed(text: str, path: Path, wanted: Sequence[str], is_cut: bool = False) -> Records:
    if ending(path) == ".jsonl":
        return _from_objects(_json_objects(text, path), path)
    rows = [row for row in _rows(text, path) if any(row[1])]
    if not rows:
        raise MiradaError(f"{path}: all cells of the table are empty, expected texts.")
    if is_cut and len(rows[-1][1]) != len(rows[0][1]):
        rows.pop()  # half of a cell that goes over several lines
    _require_rectangle(rows, path)
    first = rows[0][1]
    if is_header(first, wanted):
        names, rows = first, rows[1:]
        notes: tuple[str, ...] = ()
        if not rows and not is_cut:
            raise MiradaError(f"{path}: the table has a header ({', '.join(names)}) but no rows.")
    else:
        names = [f"column{i + 1}" for i in range(len(first))]
        notes = (f"{path.name}: its first row names no columns that we know, so it counts as data, not as a header.",)
    columns = {name: [cells[i] for _, cells in rows] for i, name in enumerate(names)}
    return Records(columns, [line for line, _ in rows], notes)


def _rows(text: str, path: Path) -> Iterable[Row]:
    if ending(path) != ".csv":
        return ((n, [cell.strip() for cell in line.split("\t")]) for n, line in enumerate(text.split("\n"), start=1))
    return _csv_rows(text, _delimiter(text, path), path)


def _csv_rows(text: str, delimiter: str, path: Path) -> list[Row]:
    # The limit on the length of a cell belongs to the whole process, so it is put back.
    limit = csv.field_size_limit(sys.maxsize)
    reader, rows, line = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [], 1
    try:
        for cells in reader:
            rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise MiradaError(f"{path}: line {line} is not CSV ({error}); correct it or save the table as .tsv.") from None
    finally:
        csv.field_size_limit(limit)
    return rows


def _delimiter(text: str, path: Path) -> str:
    """The separator that cuts the first rows into equally many cells, at least two; else the most frequent one."""
    head = text.split("\n", 20)[:20]
    for delimiter in SEPARATORS:
        rows = _csv_rows("\n".join(head), delimiter, path)
        whole = rows[:-1] if len(rows) > 1 else rows  # the last may be half a row
        widths = {len(cells) for _, cells in whole if any(cells)}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return max(SEPARATORS, key=head[0].count)


def _require_rectangle(rows: list[Row], path: Path) -> None:
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            remedy = "put texts with separators in quotation marks" if ending(path) == ".csv" else "look for stray tabs"
            raise MiradaError(f"{path}: line {line} has {len(cells)} cells, expected {width} as in line 1; {remedy}.")


def _json_objects(text: str, path: Path) -> Iterator[tuple[int, dict]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = json.loads(content)
        except RecursionError:
            raise MiradaError(f"{path}: line {line} is nested too deeply, expected an object of texts.") from None
        except ValueError as error:
            raise MiradaError(f"{path}: line {line} is not JSON ({error}); expected one object per line.") from None
        if not isinstance(record, dict):
            raise MiradaError(f"{path}: line {line} is not an object, expected something like {{'source': …}}.")
        yield line, record


def _parquet_texts(path: Path) -> list[str]:
    """Names of the columns of strings, those inside NESTED too."""
    schema, names = schema_of(path), []
    for field in schema:
        inner = [field.type.field(i) for i in range(field.type.num_fields)] if field.name == NESTED else [field]
        names += [part.name for part in inner if str(part.type) in ("string", "large_string")]
    return names


def _parquet_objects(path: Path) -> Iterator[tuple[int, dict]]:
    values = read_values(path, schema_of(path).names)
    for name, feature in features_of(path).items():
        if name in values and isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            values[name] = [feature["names"][i] if i is not None and i >= 0 else "" for i in values[name]]
    for row, cells in enumerate(zip(*values.values(), strict=True), start=1):
        yield row, dict(zip(values, cells, strict=True))


def _from_objects(objects: Iterable[tuple[int, dict]], path: Path) -> Records:
    """Columns are the keys of the first object, which all others must have."""
    columns: Columns = {}
    lines = []
    for line, nested in objects:
        inner = nested.get(NESTED)
        record = {**nested, **inner} if isinstance(inner, dict) else nested
        if isinstance(inner, dict):
            del record[NESTED]
        columns = columns or {name: [] for name in record}
        for name, cells in columns.items():
            if name not in record:
                raise MiradaError(f"{path}: line {line} has no {name!r}, expected {', '.join(columns)} as in line 1.")
            cells.append(sound(cell_text(record[name])).strip())
        lines.append(line)
    if not lines:
        raise MiradaError(f"{path}: the table has no rows.")
    return Records(columns, lines)
