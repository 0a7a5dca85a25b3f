"""What the images are, from their headers: size, channels, and how much memory they need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirada.data.decode import ImageHeader, read_header
from mirada.data.table import ImageTable
from mirada.errors import MiradaError

# Sides that patches of 4 or 8 divide.
SIDES = (8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224)
# At 128 px with patches of 16 a transformer sees 64 tokens, the same work as 32 px with patches of 4,
# and 10,000 RGB images take 0.5 GB. Above it an epoch on two cores takes minutes, so more is a
# decision for the user.
DEFAULT_CAP = 128
# Small images of one size are kept as they are: resampling 28 px to 24 would only lose detail.
KEEP_UP_TO = 64
SAMPLE = 500

_GREY = ("1", "L", "LA", "La", "F", "1 x uint8")


@dataclass(frozen=True)
class ImageShape:
    """Inferred (height, width) and channels, and the sentence that says why."""

    size: tuple[int, int]
    channels: int
    why: str


def infer_shape(table: ImageTable, cap: int = DEFAULT_CAP) -> ImageShape:
    """Size and channels for training, from up to 500 evenly spaced headers."""
    if table.pixels is not None:
        sizes, channels = np.array([table.pixels.shape[1:3]]), table.pixels.shape[3]
    else:
        headers = _sample_headers(table)
        sizes = np.array([(header.height, header.width) for header in headers])
        channels = channels_of([header.mode for header in headers])
    size, why = size_for(sizes, cap)
    return ImageShape(size, channels, why)


def infer_image_size(table: ImageTable, cap: int = DEFAULT_CAP) -> tuple[int, int]:
    """(height, width) to train at."""
    return infer_shape(table, cap).size


def size_for(sizes: np.ndarray, cap: int = DEFAULT_CAP) -> tuple[tuple[int, int], str]:
    """From (N, 2) heights and widths: small uniform images as they are; else the median shorter side, rounded
    down to a side that patches divide and capped; the aspect is kept where nearly all images share it."""
    height, width = np.median(sizes, axis=0)
    if (sizes == sizes[0]).all() and sizes.max() <= min(KEEP_UP_TO, cap):
        return (int(height), int(width)), f"all images are {int(width)} x {int(height)}"
    aspects = sizes[:, 1] / sizes[:, 0]
    aspect = float(np.median(aspects))
    shared = np.mean(np.abs(aspects / aspect - 1) < 0.05) >= 0.9
    shorter = float(np.median(sizes.min(axis=1)))
    side = max([side for side in SIDES if side <= min(shorter, cap)], default=SIDES[0])
    longer = max(side, round(side * max(aspect, 1 / aspect) / 8) * 8) if shared else side
    size = (side, longer) if aspect >= 1 else (longer, side)
    return size, f"the median image is {int(width)} x {int(height)}; the shorter side is rounded down, at most {cap}"


def channels_of(modes: list[str]) -> int:
    """1 if every image is grey, 3 if any is in colour, else the number of bands."""
    bands = {int(mode.split()[0]) for mode in modes if mode.endswith("uint8")} - {1, 3}
    if bands:
        if len(bands) > 1 or any(not mode.endswith("uint8") for mode in modes):
            raise MiradaError(
                f"images with {sorted(bands)} bands are mixed with others; use images with the same bands."
            )
        return bands.pop()
    return 1 if all(mode in _GREY or mode.startswith("I") for mode in modes) else 3


def bytes_in_memory(num_images: int, shape: ImageShape) -> int:
    """uint8 bytes of the whole set at this size."""
    return num_images * shape.channels * shape.size[0] * shape.size[1]


def _sample_headers(table: ImageTable) -> list[ImageHeader]:
    rows = np.unique(np.linspace(0, len(table) - 1, min(SAMPLE, len(table))).astype(int))
    headers = []
    assert table.paths is not None
    for row in rows:
        try:
            headers.append(read_header(table.paths[row]))
        except MiradaError as error:
            reason = error
    if not headers:
        raise MiradaError(f"{table.source}: none of {len(rows)} sampled images can be read; the last one: {reason}")
    return headers
