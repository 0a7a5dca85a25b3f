"""Look at the data before training: counts, sizes, broken files, balance, duplicates, leaks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from mirada.data.decode import ImageHeader, read_header
from mirada.data.fingerprint import difference_hash, near_rows, pixel_hash, same_rows
from mirada.data.sizing import ImageShape, bytes_in_memory, channels_of, size_for
from mirada.data.sources import open_source
from mirada.data.splits import crossing_duplicates
from mirada.data.suspicions import problems_of, warnings_of
from mirada.data.table import SPLIT_NAMES, BrokenImage, ImageTable
from mirada.errors import MiradaError

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Inspection:
    """What a look at the data found. Sizes are (height, width); images are called by name."""

    source: str
    kind: str
    task: str
    num_images: int
    broken: tuple[BrokenImage, ...]
    class_counts: dict[str, dict[str, int]]  # class -> split ('all' when none is given) -> images
    split_counts: dict[str, int]
    target_ranges: dict[str, tuple[float, float, float]]  # regression: name -> min, mean, max
    smallest: tuple[int, int] | None
    median: tuple[int, int] | None
    largest: tuple[int, int] | None
    num_sizes: int
    num_not_square: int
    modes: dict[str, int]
    animated: int
    channels: int | None
    image_size: tuple[int, int] | None  # what training would use
    megabytes: float  # the whole set in memory at that size
    duplicates: tuple[tuple[str, ...], ...]
    leaks: tuple[tuple[str, ...], ...]  # identical images on several sides of a given split
    conflicts: tuple[tuple[str, ...], ...]  # identical images with different targets
    near_duplicates: tuple[tuple[str, ...], ...] | None  # None: not looked for
    problems: tuple[str, ...]  # these stop training
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict:
        """Plain dictionaries and lists, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Examined:
    header: ImageHeader | None = None
    exact: bytes | None = None
    near: int | None = None
    reason: str = ""


def inspect(
    source: str | os.PathLike | ImageTable,
    *,
    near_duplicates: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
    **options,
) -> Inspection:
    """Decode every image once and report. `options` are those of open_source."""
    table = source if isinstance(source, ImageTable) else open_source(source, **options)
    examined = _examine_all(table, near_duplicates, workers, progress)
    usable = np.array([row for row, found in enumerate(examined) if found.header is not None], dtype=np.int64)
    broken = tuple(BrokenImage(table.name(row), e.reason) for row, e in enumerate(examined) if e.header is None)
    headers = [examined[row].header for row in usable]
    kept = table.subset(usable)
    hashes = [examined[row].exact for row in usable]
    duplicates = same_rows(hashes)
    conflicts = [group for group in duplicates if len({kept.targets[row].tobytes() for row in group}) > 1]
    leaks = crossing_duplicates(kept.splits, hashes) if kept.splits is not None else []
    pairs = near_rows([examined[row].near for row in usable]) if near_duplicates else None
    sizes = np.array([(header.height, header.width) for header in headers]).reshape(-1, 2)
    modes = dict(Counter(header.mode for header in headers).most_common())
    problems = list(problems_of(kept, num_broken=len(broken)))
    shape = _shape(sizes, list(modes), problems)
    near = None if pairs is None else [pair for pair in pairs if hashes[pair[0]] != hashes[pair[1]]]
    return Inspection(
        source=table.source,
        kind=table.kind,
        task=table.task,
        num_images=len(table),
        broken=broken,
        class_counts=_class_counts(kept),
        split_counts=_split_counts(kept),
        target_ranges=_target_ranges(kept),
        smallest=_size_at(sizes, np.argmin),
        median=_median_size(sizes),
        largest=_size_at(sizes, np.argmax),
        num_sizes=len(np.unique(sizes, axis=0)),
        num_not_square=int((sizes[:, 0] != sizes[:, 1]).sum()),
        modes=modes,
        animated=sum(header.frames > 1 for header in headers),
        channels=shape.channels if shape else None,
        image_size=shape.size if shape else None,
        megabytes=round(bytes_in_memory(len(kept), shape) / 2**20, 1) if shape else 0.0,
        duplicates=_named(kept, duplicates),
        leaks=_named(kept, leaks),
        conflicts=_named(kept, conflicts),
        near_duplicates=None if near is None else _named(kept, near),
        problems=tuple(problems),
        warnings=tuple(warnings_of(kept, headers, len(broken), duplicates, leaks, conflicts)),
        notes=table.notes,
    )


def _examine_all(table: ImageTable, near: bool, workers: int | None, progress: Progress | None) -> list[_Examined]:
    examined = []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for found in pool.map(partial(_examine, table, near=near), range(len(table))):
            examined.append(found)
            if progress is not None:
                progress(len(examined), len(table))
    return examined


def _examine(table: ImageTable, row: int, near: bool) -> _Examined:
    try:
        pixels = table.read(row)
        if table.paths is not None:
            header = read_header(table.paths[row])
        else:
            header = ImageHeader(pixels.shape[0], pixels.shape[1], f"{pixels.shape[2]} x uint8", "array")
    except MiradaError as error:
        return _Examined(reason=str(error))
    return _Examined(header, pixel_hash(pixels), difference_hash(pixels) if near else None)


def _shape(sizes: np.ndarray, modes: list[str], problems: list[str]) -> ImageShape | None:
    if not len(sizes):
        return None
    try:
        channels = channels_of(modes)
    except MiradaError as error:
        problems.append(str(error))
        return None
    size, why = size_for(sizes)
    return ImageShape(size, channels, why)


def _size_at(sizes: np.ndarray, pick: Callable) -> tuple[int, int] | None:
    """The image with the fewest or the most pixels."""
    if not len(sizes):
        return None
    height, width = sizes[pick(sizes.prod(axis=1))].tolist()
    return height, width


def _median_size(sizes: np.ndarray) -> tuple[int, int] | None:
    if not len(sizes):
        return None
    height, width = np.median(sizes, axis=0)
    return int(height), int(width)


def _class_counts(table: ImageTable) -> dict[str, dict[str, int]]:
    if table.task == "regression":
        return {}
    sides = {"all": np.arange(len(table))}
    if table.splits is not None:
        sides = {name: np.flatnonzero(table.splits == name) for name in SPLIT_NAMES if (table.splits == name).any()}
    counts = {side: table.class_counts(rows) for side, rows in sides.items()}
    return {name: {side: int(counts[side][i]) for side in sides} for i, name in enumerate(table.class_names)}


def _split_counts(table: ImageTable) -> dict[str, int]:
    if table.splits is None:
        return {"all": len(table)}
    return {name: int((table.splits == name).sum()) for name in SPLIT_NAMES}


def _target_ranges(table: ImageTable) -> dict[str, tuple[float, float, float]]:
    if table.task != "regression" or not len(table):
        return {}
    columns = zip(table.target_names, table.targets.T, strict=True)
    return {name: (float(c.min()), float(c.mean()), float(c.max())) for name, c in columns}


def _named(table: ImageTable, groups) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(table.name(row) for row in group) for group in groups)
