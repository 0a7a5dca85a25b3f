"""The one shape every image source is read into: a table with one row per image."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from mirada.data.decode import decode_image

Task = Literal["single-label", "multi-label", "regression"]
TASKS: tuple[Task, ...] = ("single-label", "multi-label", "regression")
SPLIT_NAMES = ("train", "val", "test")

_SPLIT_ALIASES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
    "t10k": "test",
}


def canonical_split(name: str) -> str | None:
    """'Validation' -> 'val'; None when the name is not that of a split."""
    return _SPLIT_ALIASES.get(name.strip().lower())


@dataclass(frozen=True)
class BrokenImage:
    """An image that cannot be used, and the sentence that says why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Images (as files or as one uint8 array), their targets, and what was inferred about them.

    targets: single-label int64 (N,), indices into class_names;
             multi-label float32 (N, num_classes) of 0 and 1;
             regression float32 (N, num_targets).
    """

    source: str
    kind: str  # 'folder' | 'table' | 'npz' | 'idx' | 'sample'
    task: Task
    targets: np.ndarray
    class_names: tuple[str, ...] = ()  # empty for regression
    target_names: tuple[str, ...] = ()  # the columns of a regression
    paths: tuple[str, ...] | None = None
    pixels: np.ndarray | None = None  # uint8 (N, height, width, channels)
    splits: np.ndarray | None = None  # (N,) of 'train' | 'val' | 'test', when the source gives them
    groups: np.ndarray | None = None  # (N,) int64: images of one group stay on one side
    notes: tuple[str, ...] = ()  # what was decided while reading, in plain sentences

    def __post_init__(self):
        assert (self.paths is None) != (self.pixels is None)
        assert self.task in TASKS
        assert self.pixels is None or (self.pixels.ndim == 4 and self.pixels.dtype == np.uint8)
        for column in (self.targets, self.splits, self.groups):
            assert column is None or len(column) == len(self)

    def __len__(self) -> int:
        return len(self.paths) if self.paths is not None else len(self._array)

    @property
    def num_outputs(self) -> int:
        """Width of a model's last layer for this table."""
        return self.targets.shape[1] if self.task == "regression" else len(self.class_names)

    def name(self, row: int) -> str:
        """What to call this image in a message or a results file."""
        return self.paths[row] if self.paths is not None else f"{Path(self.source).name}[{row}]"

    def read(self, row: int, target_size: tuple[int, int] | None = None) -> np.ndarray:
        """Decode one image to uint8 (height, width, channels)."""
        return decode_image(self.paths[row], target_size) if self.paths is not None else self._array[row]

    def label(self, row: int) -> str:
        """The target of one image, as text."""
        target = self.targets[row]
        if self.task == "single-label":
            return self.class_names[target]
        if self.task == "multi-label":
            return ";".join(self.class_names[i] for i in np.flatnonzero(target))
        return ";".join(f"{value:g}" for value in target)

    def class_counts(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Images per class (per label, for multi-label), over all rows or some."""
        assert self.task != "regression"
        targets = self.targets if rows is None else self.targets[rows]
        if self.task == "multi-label":
            return targets.sum(axis=0).astype(np.int64)
        return np.bincount(targets, minlength=len(self.class_names))

    @property
    def _array(self) -> np.ndarray:
        assert self.pixels is not None
        return self.pixels

    def subset(self, rows: np.ndarray) -> ImageTable:
        """The same table with only these rows, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            targets=self.targets[rows],
            paths=None if self.paths is None else tuple(self.paths[row] for row in rows),
            pixels=None if self.pixels is None else self.pixels[rows],
            splits=None if self.splits is None else self.splits[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def checksum(self) -> str:
        """SHA-256 of what the rows are called and of their targets (of the pixels too, when in memory)."""
        digest = hashlib.sha256(repr((self.task, self.class_names, self.target_names)).encode())
        if self.paths is not None:
            root = Path(self.source)
            for path in self.paths:
                digest.update(_relative(path, root).encode("utf-8", "surrogateescape") + b"\0")
        else:
            digest.update(str(self._array.shape).encode() + self._array.tobytes())
        digest.update(np.ascontiguousarray(self.targets).tobytes())
        return digest.hexdigest()


def _relative(path: str, root: Path) -> str:
    """Paths count relative to the source, so that moving a data folder keeps its checksum."""
    folder = root if root.is_dir() else root.parent
    try:
        return Path(path).relative_to(folder).as_posix()
    except ValueError:
        return path
