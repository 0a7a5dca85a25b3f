"""One mask file to one code per pixel: the number of its class as stored, or its colour as 0xRRGGBB.

palette, 8-bit grey, 1-bit    the stored number; the colours of a palette are for the eye only
RGB of equal channels         the grey
RGB                           the colour
.npy                          whole numbers 0 … 255, (H, W)
16-bit, float                 refused: they are instances, heights or probabilities, not classes
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from mirada.data.decode import open_image
from mirada.errors import MiradaError

ADVICE = "save it as an 8-bit PNG with the number of a class, or its colour, in every pixel"


def decode_mask(path: str | Path) -> tuple[np.ndarray, bool]:
    """Codes (H, W) as int32, and whether they are colours."""
    if Path(path).suffix.lower() == ".npy":
        return _from_array(_loaded(path), str(path)), False
    with open_image(path) as image:
        return _codes(ImageOps.exif_transpose(image), str(path))


def codes_of_array(masks: np.ndarray, where: str) -> np.ndarray:
    """(N, H, W) or (N, H, W, 1) of an archive, as (N, H, W)."""
    if masks.ndim == 4 and masks.shape[-1] == 1:
        masks = masks[..., 0]
    if masks.ndim != 3:
        raise MiradaError(f"{where}: masks have shape {masks.shape}, expected (N, height, width).")
    return _whole_numbers(masks, where)


def _loaded(path: str | Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MiradaError(f"{path}: cannot be read as an array ({error}).") from None


def _codes(image: Image.Image, where: str) -> tuple[np.ndarray, bool]:
    mode = image.mode
    if mode.startswith("I"):
        raise MiradaError(f"{where}: is a mask of more than 8 bits ({mode}), expected 8 bits; {ADVICE}.")
    if mode == "F":
        raise MiradaError(f"{where}: is a mask of decimal numbers, expected whole ones; {ADVICE}.")
    if mode in ("P", "L", "1"):
        return np.asarray(image).astype(np.int32), False
    if mode in ("LA", "La"):
        return np.asarray(image.convert("LA"))[..., 0].astype(np.int32), False
    rgb = np.asarray(image.convert("RGB")).astype(np.int32)
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    if np.array_equal(red, green) and np.array_equal(green, blue):
        return red, False
    return (red << 16) | (green << 8) | blue, True


def _from_array(mask: np.ndarray, where: str) -> np.ndarray:
    if mask.ndim != 2:
        raise MiradaError(f"{where}: a mask of shape {mask.shape}, expected (height, width).")
    return _whole_numbers(mask, where)


def _whole_numbers(masks: np.ndarray, where: str) -> np.ndarray:
    if masks.dtype.kind not in "biu":
        raise MiradaError(f"{where}: masks are {masks.dtype}, expected whole numbers, one for each class.")
    if masks.size and (masks.min() < 0 or masks.max() > 255):
        raise MiradaError(f"{where}: masks hold {masks.min()} … {masks.max()}, expected numbers of classes, 0 to 255.")
    return masks.astype(np.int32)
