"""One mask file to one code per pixel: the number of its class as stored, or its colour as 0xRRGGBB.

palette, 8-bit grey, 1-bit    the stored number; its colour where classes are colours
RGB of equal channels         the grey
RGB                           the colour
.npy                          whole numbers 0 … 255, (H, W)
16-bit, float                 refused: they are instances, heights or probabilities, not classes
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from mirada.data.decode import open_image
from mirada.errors import MiradaError

ADVICE = "save it as an 8-bit PNG with the number of a class, or its colour, in every pixel"


GREYS = np.arange(256) * 0x010101


@dataclass(frozen=True, eq=False)
class DecodedMask:
    """Codes (H, W) as int32: colours, or numbers, each of which is shown in a colour."""

    codes_HW: np.ndarray
    colour_of: np.ndarray | None  # (256,) of numbers; None: the codes are colours

    @property
    def colours_HW(self) -> np.ndarray:
        return self.codes_HW if self.colour_of is None else self.colour_of[self.codes_HW]


def decode_mask(path: str | Path) -> DecodedMask:
    if Path(path).suffix.lower() == ".npy":
        return DecodedMask(_from_array(_loaded(path), str(path)), GREYS)
    with open_image(path) as image:
        _require_8_bits(image, str(path))
        return _codes(ImageOps.exif_transpose(image))


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


def _require_8_bits(image: Image.Image, where: str) -> None:
    """Before anything is decoded: Pillow cuts 16-bit colours down to 8 bits without a word."""
    stored = [str(tile[3]) for tile in getattr(image, "tile", ())]
    if image.mode.startswith("I") or any(re.search(";16[BLN]", words) for words in stored):
        raise MiradaError(f"{where}: is a mask of more than 8 bits ({image.mode}), expected 8 bits; {ADVICE}.")
    if image.mode == "F":
        raise MiradaError(f"{where}: is a mask of decimal numbers, expected whole ones; {ADVICE}.")


def _codes(image: Image.Image) -> DecodedMask:
    mode = image.mode
    if mode in ("P", "L", "1"):
        return DecodedMask(np.asarray(image).astype(np.int32), _palette(image) if mode == "P" else GREYS)
    if mode in ("LA", "La"):
        return DecodedMask(np.asarray(image.convert("LA"))[..., 0].astype(np.int32), GREYS)
    rgb = np.asarray(image.convert("RGB")).astype(np.int32)
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    if np.array_equal(red, green) and np.array_equal(green, blue):
        return DecodedMask(red, GREYS)
    return DecodedMask((red << 16) | (green << 8) | blue, None)


def _palette(image: Image.Image) -> np.ndarray:
    """(256,) colours as 0xRRGGBB; black where the palette is shorter."""
    stored = np.array(image.getpalette("RGB"), dtype=np.int64).reshape(-1, 3) @ (0x10000, 0x100, 1)
    return np.pad(stored, (0, 256 - len(stored)))


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
