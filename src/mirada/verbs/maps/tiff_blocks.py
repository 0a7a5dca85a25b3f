"""A tiled BigTIFF whose blocks we append ourselves.

GDAL rewrites the directory of a TIFF whenever it is flushed; a process that is killed at that moment leaves a file that
nobody can open. So GDAL only makes the empty file, with its CRS and names. Blocks are then appended behind it, and once
all are there their places are written into the two tables that GDAL left: TileOffsets and TileByteCounts, whose entry 0
means that the block is not stored (nodata).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mirada.data.geo.grid import Grid

OFFSETS, COUNTS = 324, 325  # tags
NUMBERS = {3: "u2", 4: "u4", 16: "u8"}  # types SHORT, LONG, LONG8
HEADER, FIELD = 16, 20  # bytes


def make_empty(
    path: Path, grid: Grid, names: tuple[str, ...], tile: int, tags: Mapping[str, str] | None = None
) -> None:
    """A file without blocks: bands of float32 with NaN for nodata, pixel by pixel in square tiles."""
    import rasterio

    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        dtype="float32",
        count=len(names),
        height=grid.size[0],
        width=grid.size[1],
        crs=grid.crs,
        transform=grid.transform,
        nodata=float("nan"),
        tiled=True,
        blockxsize=tile,
        blockysize=tile,
        interleave="pixel",
        bigtiff="yes",
        sparse_ok=True,
        endianness="little",
    ) as file:
        file.descriptions = names
        file.update_tags(**(tags or {}))


def block_of(bands_Thw: np.ndarray) -> bytes:
    return np.ascontiguousarray(bands_Thw.transpose(1, 2, 0), dtype="<f4").tobytes()


def write_tables(path: Path, offset_of: Mapping[int, int], num_bytes: int) -> None:
    """Where the block of each tile lies; writing them again changes nothing."""
    with open(path, "r+b") as file:
        for tag, entry_of in ((OFFSETS, offset_of), (COUNTS, dict.fromkeys(offset_of, num_bytes))):
            place, kind, length = _table(file.read, file.seek, tag)
            entries = np.zeros(length, "<" + NUMBERS[kind])
            for number, entry in entry_of.items():
                entries[number] = entry
            file.seek(place)
            file.write(entries.tobytes())


def _table(read, seek, tag: int) -> tuple[int, int, int]:
    """Place, type and length of the values of a field of the first directory (BigTIFF, little-endian)."""
    seek(0)
    magic, version, _, _, directory = struct.unpack("<2sHHHQ", read(HEADER))
    assert (magic, version) == (b"II", 43), "not a BigTIFF"
    seek(directory)
    (num_fields,) = struct.unpack("<Q", read(8))
    for n in range(num_fields):
        found, kind, length, value = struct.unpack("<HHQQ", read(FIELD))
        if found == tag:
            own = directory + 8 + FIELD * n + 12  # up to eight bytes lie in the field itself
            return (own if length * np.dtype(NUMBERS[kind]).itemsize <= 8 else value), kind, length
    raise AssertionError(f"no field {tag}")
