"""The held-out images again, as the model saw them, for pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from mirada.data import decode_image, fit_image, match_channels, open_source
from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.style import data_uri

FILE_KINDS = ("folder", "table", "mask folders")  # whose rows are named by their paths
LARGEST = 160  # px of a picture in the report
PIXEL_ART = 64  # px up to which images are kept exact, and shown with square pixels


@dataclass(frozen=True)
class Reader:
    """Reads row after row of predictions.csv: uint8 (height, width, channels), fitted to the model's size."""

    run: Contents
    pixels: Callable[[dict[str, str]], np.ndarray]

    def read(self, prediction: dict[str, str]) -> np.ndarray:
        data = self.run.data
        image = match_channels(self.pixels(prediction), data["in_channels"])
        return fit_image(image, tuple(data["image_size"]), data.get("fit", "crop"))


def open_held_out(run: Contents) -> Reader:
    """Raises a MiradaError with the reason where the images cannot be had any more."""
    data = run.data
    if data["kind"] in FILE_KINDS:
        size = tuple(data["image_size"])
        return Reader(run, lambda prediction: decode_image(prediction["name"], size))
    table = open_source(data["source"], task=data.get("labels", data["task"]))
    if table.checksum() != data["checksum"]:
        raise MiradaError(f"{data['source']}: changed since the run, so its images are no longer those of this run.")
    return Reader(run, lambda prediction: table.read(int(prediction["row"])))


def displayable(image: np.ndarray) -> np.ndarray:
    """uint8 (height, width, 3): grey is repeated; of many bands the first three are stretched to the full range."""
    bands = image.shape[2]
    if bands == 3:
        return image
    if bands <= 2:
        return np.repeat(image[..., :1], 3, axis=2)
    first = image[..., :3].astype(np.float64)
    low, high = np.percentile(first, [2, 98], axis=(0, 1))
    return np.rint(255 * np.clip((first - low) / np.maximum(high - low, 1), 0, 1)).astype(np.uint8)


def picture_uri(picture: np.ndarray) -> str:
    """Small images exactly, large ones as JPEG: the report stays small enough to be sent by mail."""
    image = Image.fromarray(picture)
    stream = io.BytesIO()
    if max(picture.shape[:2]) <= PIXEL_ART:
        image.save(stream, "PNG", optimize=True)
        return data_uri(stream.getvalue(), "png")
    image.thumbnail((LARGEST, LARGEST))
    image.save(stream, "JPEG", quality=85)
    return data_uri(stream.getvalue(), "jpeg")
