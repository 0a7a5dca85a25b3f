"""Images that lie inside Arrow and Parquet files, as bytes in a column.

Each has an address that goes wherever the path of an image file goes:

    beans/data/train-00000-of-00001.parquet[17].image      file[row].column

A cell is a struct {bytes, path}, as Hugging Face writes it, or plain bytes; without bytes the path is that of a file.
Arrow files are mapped, so nothing is read but what is asked for. Of Parquet the row groups used last are kept.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirada.errors import MiradaError

if TYPE_CHECKING:
    import pyarrow

EXTENSIONS = (".arrow", ".parquet")
KEPT_BYTES = 256 << 20  # of row groups, in each process
LARGEST_GROUP = 4 << 30  # a file can claim far more than its size on disk

_ADDRESS = re.compile(r"(?P<file>.+\.(?:arrow|parquet))\[(?P<row>\d+)\]\.(?P<column>.+)", re.DOTALL)
_POINTER = b"version https://git-lfs"

# One reader at a time: neither the cache nor a Parquet file may be used by two threads; decoding itself is parallel.
_lock = threading.Lock()


def address(file: Path, row: int, column: str) -> str:
    return f"{file}[{row}].{column}"


def is_address(path: str | os.PathLike) -> bool:
    return _ADDRESS.fullmatch(os.fspath(path)) is not None


def read_packed(path: str | os.PathLike) -> bytes:
    """The bytes of the image at an address. Raises OSError or ValueError, as reading a file would."""
    match = _ADDRESS.fullmatch(os.fspath(path))
    assert match is not None
    file, row, column = Path(match["file"]), int(match["row"]), match["column"]
    with _lock:
        cell = _open(file).cell(row, column)
    content, beside = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if content is not None:
        return content
    if beside is None:
        raise ValueError("the cell is empty")
    # `datasets` keeps such paths as they were given, so relative ones may also start where the program runs.
    found = next((path for path in (file.parent / beside, Path(beside)) if path.is_file()), None)
    if found is None:
        raise ValueError(f"it holds no image but the path {beside!r}, where there is no file")
    return found.read_bytes()


def schema_of(file: Path) -> pyarrow.Schema:
    """Names and types of the columns, and what else is written about them."""
    with _explained(file), _lock:
        return _open(file).schema


def read_values(file: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Whole columns (not those of images) as Python values."""
    with _explained(file), _lock:
        return _open(file).values(columns)


def num_rows(file: Path) -> int:
    with _explained(file), _lock:
        return _open(file).num_rows


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Turn what pyarrow raises into one sentence that names the file."""
    try:
        yield
    except ImportError:
        raise MiradaError(f'{file}: needs pyarrow to be read; pip install "mirada[parquet]".') from None
    except Exception as error:  # pyarrow has a dozen types for damaged bytes
        reason = " ".join(str(error).split())[:200]
        raise MiradaError(f"{file}: not a readable {file.suffix[1:]} file ({reason}).") from None


def _open(file: Path) -> _ArrowFile | _ParquetFile:
    status = os.stat(file)
    return _open_version(str(file), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=1024)
def _open_version(name: str, modified: int, size: int) -> _ArrowFile | _ParquetFile:
    """A file that was written anew is another one."""
    with open(name, "rb") as stream:
        if stream.read(len(_POINTER)) == _POINTER:
            raise ValueError("it is a Git LFS pointer in place of the file; get the file with `git lfs pull`")
    return _ArrowFile.open(name) if name.endswith(".arrow") else _ParquetFile.open(name, (name, modified, size))


@dataclass(frozen=True, eq=False)
class _ArrowFile:
    table: pyarrow.Table

    @classmethod
    def open(cls, name: str) -> _ArrowFile:
        import pyarrow

        mapped = pyarrow.memory_map(name)
        # `datasets` writes streams; other programs write files, which begin with a word of their own.
        is_file = mapped.read(6) == b"ARROW1"
        mapped.seek(0)
        reader = pyarrow.ipc.open_file(mapped) if is_file else pyarrow.ipc.open_stream(mapped)
        table = reader.read_all()
        table.validate(full=True)  # a damaged file could point anywhere in memory
        return cls(table)

    @property
    def schema(self) -> pyarrow.Schema:
        return self.table.schema

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    def values(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        return self.table.select(list(columns)).to_pydict()

    def cell(self, row: int, column: str) -> Any:
        _require_cell(row, column, self.num_rows, self.schema.names)
        return self.table.column(column)[row].as_py()


@dataclass(frozen=True, eq=False)
class _ParquetFile:
    file: Any  # pyarrow.parquet.ParquetFile
    version: tuple[str, int, int]
    starts: np.ndarray  # first row of every row group, and the number of rows

    @classmethod
    def open(cls, name: str, version: tuple[str, int, int]) -> _ParquetFile:
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(name, memory_map=True)
        metadata = file.metadata
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return cls(file, version, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64))

    @property
    def schema(self) -> pyarrow.Schema:
        return self.file.schema_arrow

    @property
    def num_rows(self) -> int:
        return int(self.starts[-1])

    def values(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        return self.file.read(columns=list(columns), use_threads=False).to_pydict()

    def cell(self, row: int, column: str) -> Any:
        _require_cell(row, column, self.num_rows, self.schema.names)
        group = int(np.searchsorted(self.starts, row, side="right")) - 1
        return _groups.get(self, group, column)[row - int(self.starts[group])].as_py()

    def read_group(self, group: int, column: str) -> pyarrow.ChunkedArray:
        size = self.file.metadata.row_group(group).total_byte_size
        if size > LARGEST_GROUP:
            raise ValueError(f"its row groups of {size >> 30} GiB do not fit in memory; write smaller ones")
        # No threads: a worker process that was forked has none of the reader's.
        return self.file.read_row_group(group, columns=[column], use_threads=False).column(column)


class _Groups:
    """Row groups used last, up to KEPT_BYTES and at least one."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple, pyarrow.ChunkedArray] = OrderedDict()
        self.num_bytes = 0

    def get(self, file: _ParquetFile, group: int, column: str) -> pyarrow.ChunkedArray:
        key = (file.version, group, column)
        if key not in self.kept:
            self.kept[key] = file.read_group(group, column)
            self.num_bytes += self.kept[key].nbytes
        self.kept.move_to_end(key)
        while len(self.kept) > 1 and self.num_bytes > KEPT_BYTES:
            self.num_bytes -= self.kept.popitem(last=False)[1].nbytes
        return self.kept[key]


_groups = _Groups()


def _require_cell(row: int, column: str, num_rows: int, columns: Sequence[str]) -> None:
    if row >= num_rows:
        raise ValueError(f"the file has only {num_rows} rows")
    if column not in columns:
        raise ValueError(f"the file has no column {column!r}, only {', '.join(columns)}")
