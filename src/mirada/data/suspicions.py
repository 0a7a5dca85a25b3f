"""What is wrong or odd about a set of images, in plain sentences. Problems stop training, warnings do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.data.decode import ImageHeader
from mirada.data.table import ImageTable
from mirada.errors import MiradaError

FEW_PER_CLASS = 10
IMBALANCE = 5


def require_trainable(table: ImageTable, num_broken: int = 0) -> None:
    """Raise with the first problem, if there is one."""
    for problem in problems_of(table, num_broken):
        raise MiradaError(f"{table.source}: {problem}")


def problems_of(table: ImageTable, num_broken: int = 0) -> list[str]:
    """Reasons why nothing can be learnt from the usable rows."""
    if len(table) == 0:
        return [f"none of the {num_broken} images can be read; see the reasons for each."]
    if len(table) == 1:
        return ["there is only one usable image; training needs at least two per class."]
    if table.splits is not None and not (table.splits == "train").any():
        return ["the given split has no training images."]
    if table.task == "regression":
        constant = [n for n, column in zip(table.target_names, table.targets.T, strict=True) if np.ptp(column) == 0]
        return [f"the target is the same for all images: {', '.join(constant)}."] if constant else []
    present = table.class_counts() > 0
    if table.task == "single-label" and present.sum() < 2:
        name = table.class_names[int(present.argmax())]
        return [f"there is only one class ({name!r}); telling things apart needs at least two."]
    if table.task == "multi-label" and not present.any():
        return ["no image has any label."]
    if table.task == "single-label" and table.class_counts().max() == 1:
        return ["every class has a single image, so nothing is left to test with; add images."]
    return []


def warnings_of(
    table: ImageTable,
    headers: Sequence[ImageHeader],
    num_broken: int,
    duplicates: Sequence[Sequence[int]],
    leaks: Sequence[Sequence[int]],
    conflicts: Sequence[Sequence[int]],
) -> list[str]:
    """Things to know before trusting a result. `duplicates`, `leaks`, `conflicts` are groups of rows."""
    found = []
    if num_broken:
        found.append(f"{num_broken} images cannot be read and would be left out.")
    if leaks:
        found.append(f"{len(leaks)} images appear in more than one split, which flatters the result.")
    if conflicts:
        found.append(f"{len(conflicts)} images appear with different labels.")
    copies = sum(len(group) - 1 for group in duplicates)
    if copies:
        found.append(f"{copies} images are exact copies of others; they are kept on one side of a new split.")
    if len(table) and table.task != "regression":
        found += _class_warnings(table)
    return found + _pixel_warnings(headers)


def names_alike(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups of class names that differ only by case, spaces, hyphens or underscores."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault("".join(c for c in name.casefold() if c not in " -_"), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _class_warnings(table: ImageTable) -> list[str]:
    found = class_count_warnings(table.class_names, table.class_counts(), "images")
    if table.splits is not None:
        trained = table.class_counts(np.flatnonzero(table.splits == "train"))
        unseen = [name for name, count in zip(table.class_names, trained, strict=True) if count == 0]
        if unseen:
            found.append(f"classes without training images: {_shortened(unseen)}.")
    return found


def class_count_warnings(names: Sequence[str], counts: np.ndarray, what: str) -> list[str]:
    """Classes that are spelt alike, small, or of very different sizes; `what` is counted."""
    found = [
        f"the classes {' and '.join(map(repr, group))} differ only in spelling; "
        "they are kept apart, rename one to merge them."
        for group in names_alike(names)
    ]
    few = [f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count < FEW_PER_CLASS]
    if few:
        found.append(f"classes with fewer than {FEW_PER_CLASS} {what}: {_shortened(few)}.")
    if len(counts) and counts.min() > 0 and counts.max() / counts.min() >= IMBALANCE:
        remedy = "balanced sampling" if what == "images" else "train.class_weights=true"
        found.append(
            f"the largest class has {counts.max() / counts.min():.0f} times the {what} of the smallest; "
            f"accuracy alone would mislead, consider {remedy}."
        )
    return found


def _pixel_warnings(headers: Sequence[ImageHeader]) -> list[str]:
    found = []
    deep = sum(header.mode.startswith("I") or header.mode == "F" for header in headers)
    if deep:
        found.append(
            f"{deep} images have more than 8 bits per pixel and are reduced to 8 (16-bit values divided by 257)."
        )
    clear = sum(header.mode in ("RGBA", "LA", "PA", "RGBa", "La") for header in headers)
    if clear:
        found.append(f"{clear} images have transparency, which is laid over white.")
    moving = sum(header.frames > 1 for header in headers)
    if moving:
        found.append(f"{moving} images are animated or have pages; the first one is used.")
    tiny = sum(min(header.height, header.width) < 8 for header in headers)
    if tiny:
        found.append(f"{tiny} images have a side under 8 pixels.")
    return found


def _shortened(items: Sequence[str], limit: int = 8) -> str:
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
