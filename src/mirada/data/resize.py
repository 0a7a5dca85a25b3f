"""Bring an image to a given (height, width) and number of channels."""

from __future__ import annotations

from typing import Literal

import numpy as np
from PIL import Image

from mirada.errors import MiradaError

Fit = Literal["crop", "squash", "pad"]
FITS: tuple[Fit, ...] = ("crop", "squash", "pad")

_LUMA = np.array([299, 587, 114], dtype=np.uint32)  # ITU-R 601, what Pillow uses for "L"


def fit_image(pixels: np.ndarray, size: tuple[int, int], fit: Fit = "crop") -> np.ndarray:
    """uint8 (H, W, C) to (height, width, C), antialiased bicubic.

    crop    scale until the image covers the target, keep the centre (nothing is distorted, borders are lost)
    squash  scale each side on its own (nothing is lost, shapes are distorted)
    pad     scale until it fits inside, black around it (nothing lost or distorted, pixels are wasted)
    """
    if fit not in FITS:
        raise MiradaError(f"fit is {fit!r}, expected one of {', '.join(FITS)}.")
    height, width = size
    from_height, from_width = pixels.shape[:2]
    if (from_height, from_width) == (height, width):
        return pixels
    if fit == "crop":
        scale = min(from_height / height, from_width / width)
        top, left = (from_height - height * scale) / 2, (from_width - width * scale) / 2
        return _resample(pixels, size, (left, top, left + width * scale, top + height * scale))
    if fit == "squash":
        return _resample(pixels, size, (0, 0, from_width, from_height))
    padded = np.zeros((height, width, pixels.shape[2]), dtype=np.uint8)
    inside, inner = padded_box((from_height, from_width), size)
    padded[inside] = _resample(pixels, inner, (0, 0, from_width, from_height))
    return padded


def padded_box(from_size: tuple[int, int], size: tuple[int, int]) -> tuple[tuple[slice, slice], tuple[int, int]]:
    """Where an image lies inside a padded one, as rows and columns, and its (height, width) there."""
    scale = max(from_size[0] / size[0], from_size[1] / size[1])
    inner = (max(1, round(from_size[0] / scale)), max(1, round(from_size[1] / scale)))
    top, left = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    return (slice(top, top + inner[0]), slice(left, left + inner[1])), inner


def match_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    """Grey to RGB by repetition, RGB to grey by luminance; any other change of bands has no meaning."""
    found = pixels.shape[2]
    if found == channels:
        return pixels
    if found == 1 and channels == 3:
        return np.repeat(pixels, 3, axis=2)
    if found == 3 and channels == 1:
        return ((pixels @ _LUMA + 500) // 1000).astype(np.uint8)[..., None]
    raise MiradaError(f"an image has {found} channels where {channels} are expected; use images with the same bands.")


def _resample(pixels: np.ndarray, size: tuple[int, int], box: tuple[float, float, float, float]) -> np.ndarray:
    if pixels.shape[2] == 3:
        return np.asarray(_resize_plane(pixels, size, box))
    planes = [_resize_plane(pixels[..., band], size, box) for band in range(pixels.shape[2])]
    return np.stack([np.asarray(plane) for plane in planes], axis=2)


def _resize_plane(plane: np.ndarray, size: tuple[int, int], box: tuple[float, float, float, float]) -> Image.Image:
    image = Image.fromarray(np.ascontiguousarray(plane))
    # reducing_gap shrinks by an integer factor first: much faster on large images, hardly visible at 3.
    return image.resize((size[1], size[0]), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
