"""The IDX format of the MNIST family: two zero bytes, type code, number of dimensions, sizes, then raw values."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mirada.data.arrays import images_from_array, table_from_arrays
from mirada.data.labels import encode_array
from mirada.data.table import ImageTable, Task, canonical_split
from mirada.errors import MiradaError

_FILE_NAME = re.compile(
    r"(?P<set>.*?)(?P<split>train|t10k|test|valid|val)[-_.]?(?P<role>images|labels).*?(\.gz)?", re.I
)
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def is_idx(path: Path) -> bool:
    return "idx" in path.name.lower() and _FILE_NAME.fullmatch(path.name) is not None


def read_idx_folder(folder: Path, class_names: Sequence[str] | None, task: Task | None, source: str) -> ImageTable:
    """A folder with train-images-idx3-ubyte.gz and its companions."""
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(filter(is_idx, folder.iterdir())):
        key = _split_and_role(path)
        if key in found and found[key].name.removesuffix(".gz") != path.name.removesuffix(".gz"):
            raise MiradaError(f"{folder}: both {found[key].name} and {path.name} are {key[0]} {key[1]}; keep one set.")
        found[key] = path
    splits, pixels, labels = [], [], []
    for split in ("train", "val", "test"):
        if (split, "images") not in found:
            continue
        if (split, "labels") not in found:
            raise MiradaError(f"{folder}: {found[split, 'images'].name} has no labels file beside it; add it.")
        images, _ = images_from_array(read_idx(found[split, "images"]), found[split, "images"].name)
        values = read_idx(found[split, "labels"])
        if len(images) != len(values):
            raise MiradaError(
                f"{folder}: {split} has {len(images)} images but {len(values)} labels; get the files again."
            )
        pixels.append(images)
        labels.append(values)
        splits += [split] * len(images)
    if not pixels:
        raise MiradaError(f"{folder}: no IDX image file, expected train-images-idx3-ubyte or similar.")
    encoded = encode_array(np.concatenate(labels), class_names, task, folder.name)
    given = splits if len(set(splits)) > 1 else None
    return table_from_arrays(np.concatenate(pixels), encoded, given, source, "idx")


def _split_and_role(path: Path) -> tuple[str, str]:
    match = _FILE_NAME.fullmatch(path.name)
    assert match is not None
    return canonical_split(match["split"]) or "", match["role"].lower()


def read_idx(path: Path) -> np.ndarray:
    """One IDX file, gzipped or not."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise MiradaError(f"{path}: cannot be unpacked ({error}); get the file again.") from None
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES:
        raise MiradaError(f"{path}: not an IDX file (it starts with {raw[:4].hex()}).")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise MiradaError(f"{path}: the IDX header is cut short; get the file again.")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    dtype = np.dtype(_TYPES[raw[2]])
    expected = dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(raw) - start != expected:
        raise MiradaError(
            f"{path}: {len(raw) - start} bytes of data, expected {expected} for {shape}; get the file again."
        )
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
