"""Look at images with masks before training: how many, how large, and how unequal the classes are."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from mirada.data.check_text import sentences
from mirada.data.masks.table import MaskTable
from mirada.data.sizing import size_for
from mirada.data.table import SPLIT_NAMES

RARE = 0.01  # of all pixels
FEW = 5  # images that have a class
LARGE = 3  # times the size of training: shrunk so much, small things vanish
SHOWN = 20


@dataclass(frozen=True)
class MaskInspection:
    """Sizes are (height, width). `classes`: name → share of the pixels that count, images that have it."""

    source: str
    kind: str
    task: str
    num_images: int
    split_counts: dict[str, int]
    classes: dict[str, tuple[float, int]]
    ignored: float  # share of all pixels
    smallest: tuple[int, int]
    largest: tuple[int, int]
    image_size: tuple[int, int]  # what training would use
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict:
        return asdict(self)


def inspect_masks(table: MaskTable) -> MaskInspection:
    shares_C = table.pixels_NC.sum(0) / table.pixels_NC.sum()
    images_C = (table.pixels_NC > 0).sum(0)
    names = table.classes.names
    size, _ = size_for(table.sizes_N2)
    areas = table.sizes_N2.prod(1)
    smallest, largest = (tuple(table.sizes_N2[pick(areas)].tolist()) for pick in (np.argmin, np.argmax))
    counts = {"all": len(table)}
    if table.splits is not None:
        counts = {name: int((table.splits == name).sum()) for name in SPLIT_NAMES}
    return MaskInspection(
        source=table.source,
        kind=table.kind,
        task="segment",
        num_images=len(table),
        split_counts=counts,
        classes={name: (float(shares_C[c]), int(images_C[c])) for c, name in enumerate(names)},
        ignored=float(table.ignored_N.sum() / areas.sum()),
        smallest=smallest,
        largest=largest,
        image_size=size,
        problems=(),
        warnings=tuple(_warnings(names, shares_C, images_C, size, largest)),
        notes=table.notes,
    )


def _warnings(
    names: tuple[str, ...], shares_C: np.ndarray, images_C: np.ndarray, size: tuple[int, int], largest: tuple
) -> list[str]:
    found = []
    for name, share, images in zip(names, shares_C, images_C, strict=True):
        if images == 0:
            found.append(f"no mask shows {name}, so it cannot be learned.")
        elif images < FEW:
            found.append(f"only {images} images show {name}: too few to learn and to test it.")
        elif share < RARE:
            found.append(f"{name} has {100 * share:.2g} % of the pixels; train.class_weights=true weighs it more.")
    if max(largest) > LARGE * max(size):
        found.append(
            f"images of up to {largest[1]} x {largest[0]} would be shrunk to {size[1]} x {size[0]}; data.fit=tile cuts "
            "them into tiles instead, as they are."
        )
    return found


def render_masks(found: MaskInspection) -> str:
    lines = [f"{found.source}: {found.num_images:,} images with masks ({found.kind})"]
    if list(found.split_counts) != ["all"]:
        lines.append("split     " + ", ".join(f"{name} {count:,}" for name, count in found.split_counts.items()))
    (low, high), (wide_low, wide_high) = (found.smallest[0], found.largest[0]), (found.smallest[1], found.largest[1])
    same = found.smallest == found.largest
    lines.append(
        f"size      {'all ' if same else ''}{wide_low} x {low}" + ("" if same else f" .. {wide_high} x {high}")
    )
    lines += ["", f"{len(found.classes)} classes, as shares of the pixels and as images that show them"]
    width = min(30, max(map(len, found.classes)))
    for name, (share, images) in list(found.classes.items())[:SHOWN]:
        bar = "█" * max(1 if share else 0, round(20 * share))
        lines.append(f"  {name[:30]:<{width}}  {100 * share:5.1f} %  {images:>6,}  {bar}")
    if len(found.classes) > SHOWN:
        lines.append(f"  ... and {len(found.classes) - SHOWN} more classes")
    if found.ignored:
        lines.append(f"  {100 * found.ignored:.1f} % of all pixels count for nothing")
    lines += sentences(found.problems, found.warnings, found.notes)
    lines += ["", f"ready to train at {found.image_size[1]} x {found.image_size[0]}"]
    return "\n".join(lines)
