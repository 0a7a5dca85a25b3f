"""One writer for all tiles: blocks appended to a BigTIFF, and a journal that says which are whole.

    block → fsync → line of the journal → fsync

A line is written only when its block is on the disk, so after a kill the journal is the truth: what lies behind the
last block that it names is cut off and made again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from mirada.data.geo.grid import Grid
from mirada.errors import MiradaError
from mirada.train.files import NO_SPACE, PARTIAL, write_atomically
from mirada.verbs.maps.tiff_blocks import block_of, make_empty, write_tables
from mirada.verbs.maps.tiles import Tile

COG = {
    "driver": "COG",
    "compress": "deflate",
    "predictor": "yes",
    "bigtiff": "if_safer",
    "sparse_ok": "true",
    "overview_resampling": "average",
    "num_threads": "all_cpus",
}
LITTLE = 2**20  # bytes: a disk with less than this is full


class TileStore:
    """The unfinished map beside `out`. `facts` say what is mapped: only the same map is gone on with."""

    def __init__(
        self,
        out: Path,
        grid: Grid,
        names: tuple[str, ...],
        tile: int,
        facts: dict,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.out, self.grid, self.names, self.tile = out, grid, names, tile
        self.tags = dict(tags or {})  # that the finished map keeps
        self.facts = json.loads(json.dumps(facts))  # as they are read back
        self.blocks_path = out.with_name(f"{out.stem}.unfinished.tif")
        self.journal_path = out.with_name(f"{out.stem}.unfinished.jsonl")
        self.num_bytes = tile * tile * len(names) * 4  # of a block
        self.offset_of: dict[int, int] = {}  # of the tiles with data
        self.empty: set[int] = set()

    @property
    def done(self) -> set[int]:
        return self.empty | self.offset_of.keys()

    def __enter__(self) -> TileStore:
        with self._told(), ExitStack() as files:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.journal = files.enter_context(open(self.journal_path, "a+b"))
            _lock(self.journal, self.out)
            lines = self._whole_lines()
            if not lines or not self.blocks_path.exists():
                make_empty(self.blocks_path, self.grid, self.names, self.tile, self.tags)
                self.journal.truncate(0)
                self.journal.write(_line({**self.facts, "start": self.blocks_path.stat().st_size}))
                _sync(self.journal)
            else:
                self._go_on(lines)
            self.blocks = files.enter_context(open(self.blocks_path, "r+b"))
            self.files = files.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.files.close()

    def write(self, tile: Tile, bands_Thw: np.ndarray | None) -> None:
        """None: no pixel has data, so nothing is stored; its line is not worth a sync, as it costs nothing to redo."""
        with self._told():
            if bands_Thw is None:
                self.journal.write(_line({"tile": tile.number}))
                self.empty.add(tile.number)
                return
            offset = self.blocks.seek(0, os.SEEK_END)
            self.blocks.write(block_of(bands_Thw))
            _sync(self.blocks)
            self.journal.write(_line({"tile": tile.number, "at": offset}))
            _sync(self.journal)
            self.offset_of[tile.number] = offset

    def finish(self) -> None:
        """The Cloud-Optimised GeoTIFF with overviews, under a name of its own until it is whole."""
        from rasterio.shutil import copy

        with self._told():
            write_tables(self.blocks_path, self.offset_of, self.num_bytes)
            for left in self.out.parent.glob(f".{self.out.name}.*{PARTIAL}*"):
                left.unlink()  # of a process that was killed here
            write_atomically(self.out, lambda partial: copy(self.blocks_path, partial, **COG))
        self.blocks_path.unlink()
        self.journal_path.unlink()

    def _whole_lines(self) -> list[dict]:
        self.journal.seek(0)
        whole = self.journal.read().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def _go_on(self, lines: list[dict]) -> None:
        """Keep the tiles that are whole, cut off what lies behind them in both files."""
        header, *tiles = lines
        other = [key for key, fact in self.facts.items() if header.get(key) != fact]
        if other:
            raise MiradaError(
                f"{self.journal_path} belongs to another map (not the same: {', '.join(other)}); give the command that "
                f"began it, another name than {self.out.name}, or delete that file to begin anew."
            )
        size, end = self.blocks_path.stat().st_size, header["start"]
        for n, line in enumerate(tiles):
            if "at" not in line:
                self.empty.add(line["tile"])
            elif line["at"] + self.num_bytes <= size:
                self.offset_of[line["tile"]], end = line["at"], line["at"] + self.num_bytes
            else:  # a disk that lost what it had promised to keep
                tiles = tiles[:n]
                break
        self.journal.truncate(sum(len(_line(line)) for line in (header, *tiles)))
        os.truncate(self.blocks_path, end)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Failures of the disk in one sentence."""
        from rasterio.errors import RasterioError

        try:
            yield
        except (OSError, RasterioError) as error:
            raise MiradaError(_why_unwritable(self.out, error)) from error
        except MiradaError as error:
            if isinstance(error.__cause__, OSError):  # write_atomically speaks of runs
                raise MiradaError(_why_unwritable(self.out, error.__cause__)) from error
            raise


def _why_unwritable(out: Path, error: Exception) -> str:
    is_full = getattr(error, "errno", None) in NO_SPACE
    with suppress(OSError):
        is_full = is_full or shutil.disk_usage(out.parent).free < LITTLE  # GDAL does not say what was wrong
    if is_full:
        return f"{out}: the disk is full; free some space and give the same command again: finished tiles are kept."
    return f"{out}: cannot be written ({getattr(error, 'strerror', None) or error}); choose another folder."


def _lock(file: IO[bytes], out: Path) -> None:
    """Against a second process with the same `out`; the system lets go of it when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MiradaError(f"{out} is being made by another process; wait for it or choose another name.") from None


def _line(content: dict) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
