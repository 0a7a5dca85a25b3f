"""Whatever a caller calls images, as pixels of the size a model was trained at."""

from __future__ import annotations

import glob
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from PIL import Image, ImageOps

from mirada.data.decode import decode_image
from mirada.data.discover import find_images
from mirada.data.resize import Fit, fit_image, match_channels
from mirada.errors import MiradaError

Progress = Callable[[int, int], None]  # (done, total)
Given = TypeVar("Given")
Found = TypeVar("Found")
Outputs = TypeVar("Outputs", bound=Sized)

PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16")


@dataclass(frozen=True)
class NamedImage:
    """A file, or an image in memory, and what to call it."""

    name: str
    content: str | np.ndarray | Image.Image


@dataclass(frozen=True)
class Target:
    """What a model takes: (height, width), channels, and how other shapes are fitted."""

    size: tuple[int, int]
    channels: int
    fit: Fit | Literal["tile"]

    @property
    def decoded_size(self) -> tuple[int, int] | None:
        """What a large JPEG may be decoded for; None: tiles are cut from images as large as they are."""
        return None if self.fit == "tile" else self.size

    def fitted(self, pixels_HWC: np.ndarray) -> np.ndarray:
        """A model that goes over large images in tiles is shown the tile in the middle, filled up as in training."""
        pixels_HWC = match_channels(pixels_HWC, self.channels)
        if self.fit != "tile":
            return fit_image(pixels_HWC, self.size, self.fit)
        spare = [side - wanted for side, wanted in zip(pixels_HWC.shape[:2], self.size, strict=True)]
        top, left = (max(0, pixels) // 2 for pixels in spare)
        tile_HWC = pixels_HWC[top : top + self.size[0], left : left + self.size[1]]
        below, right = (max(0, -pixels) for pixels in spare)
        return np.pad(tile_HWC, ((0, below), (0, right), (0, 0)))


def named_images(images: object) -> list[NamedImage]:
    """A path, folder or pattern; a uint8 array (H, W), (H, W, C) or (N, H, W, C); a Pillow image; or many of these."""
    if isinstance(images, str | os.PathLike):
        return [NamedImage(path, path) for path in paths_of(os.fspath(images))]
    if isinstance(images, Image.Image):
        return [NamedImage(getattr(images, "filename", "") or "image", images)]
    if isinstance(images, np.ndarray):
        return arrays_of(images)
    if not isinstance(images, Iterable):
        raise MiradaError(f"{type(images).__name__} is not an image; give paths, uint8 arrays or Pillow images.")
    named = []
    for number, image in enumerate(images):
        found = named_images(image)
        in_memory = not isinstance(image, str | os.PathLike)
        named += [NamedImage(f"image[{number}]", one.content) for one in found] if in_memory else found
    return named


def paths_of(word: str) -> list[str]:
    """The images of a folder or of a pattern, or the one file; a file need not exist: reading it says why not."""
    if os.path.isdir(word):
        found = [str(path) for path in find_images(word)]
        if not found:
            raise MiradaError(f"{word}: there are no images in this folder.")
        return found
    if not os.path.exists(word):
        found = sorted(path for path in glob.glob(word, recursive=True) if Path(path).is_file())
        if not found and ("*" in word or "?" in word):
            raise MiradaError(f"{word}: no file matches this pattern.")
        return found or [word]
    return [word]


def arrays_of(array: np.ndarray) -> list[NamedImage]:
    if array.dtype != np.uint8 or array.ndim not in (2, 3, 4) or 0 in array.shape:
        raise MiradaError(
            f"an array of {array.dtype} with shape {array.shape} is given, expected uint8 images (H, W), (H, W, C) or "
            "(N, H, W, C)."
        )
    if array.ndim == 4:
        return [NamedImage(f"image[{number}]", pixels) for number, pixels in enumerate(array)]
    return [NamedImage("image", array if array.ndim == 3 else array[..., None])]


def read_many(images: list[NamedImage], target: Target, batch_size: int) -> Iterator[list[np.ndarray | str]]:
    """Batches of uint8 (C, H, W), in order; in place of an image that cannot be used, the sentence that says why."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # The next batch is decoded while the model is busy with this one.
        read = in_order(pool, partial(read_or_reason, target=target), images, ahead=2 * batch_size)
        while batch := list(islice(read, batch_size)):
            yield batch


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Given], Found], items: Iterable[Given], ahead: int
) -> Iterator[Found]:
    """work(item) of every item, in order; up to `ahead` of them are begun before they are asked for."""
    begun: deque[Future[Found]] = deque()
    try:
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) >= ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for one in begun:
            one.cancel()


def read_or_reason(image: NamedImage, target: Target) -> np.ndarray | str:
    try:
        return target.fitted(pixels_of(image.content, target.decoded_size)).transpose(2, 0, 1)
    except MiradaError as error:
        return named_reason(image, error)


def named_reason(image: NamedImage, error: MiradaError) -> str:
    """Why an image cannot be used, in a sentence that names it."""
    reason = str(error)
    return reason if image.name in reason else f"{image.name}: {reason}"


def rows_of(
    batches: Iterable[tuple[list[NamedImage], list[str], Outputs]], words: Callable[[Outputs], list[dict]]
) -> list[dict]:
    """A row per image; one without an answer has its reason instead, and empty cells."""
    rows: list[dict] = []
    for batch, reasons, outputs in batches:
        answers = iter(words(outputs) if len(outputs) else ())
        for image, reason in zip(batch, reasons, strict=True):
            rows.append({"name": image.name, **({} if reason else next(answers)), "error": reason or None})
    if not rows:
        raise MiradaError("no images are given; give at least one file or folder.")
    columns = next((list(row) for row in rows if not row["error"]), None)
    if columns is None:
        raise MiradaError(f"none of {len(rows)} images can be read; the first: {rows[0]['error']}")
    return [{column: row.get(column) for column in columns} for row in rows]


def pixels_of(content: str | np.ndarray | Image.Image, size: tuple[int, int] | None = None) -> np.ndarray:
    """uint8 (H, W, C); with a `size`, a large JPEG may be decoded smaller, see decode_image."""
    if isinstance(content, np.ndarray):
        return content
    if isinstance(content, Image.Image):
        # Written and read back without loss, so that every mode is treated as in a file.
        stream = io.BytesIO()
        upright = ImageOps.exif_transpose(content)
        if upright.mode in PNG_MODES:
            upright.save(stream, "PNG", compress_level=1)
        else:
            upright.save(stream, "TIFF")
        return decode_image(stream.getvalue())
    return decode_image(content, size)
