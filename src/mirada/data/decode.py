"""One image file to one uint8 array (height, width, channels), whatever the file holds.

What happens to each kind of image:

    1-bit, 8-bit grey     1 channel, 0..255
    16-bit grey           divided by 257, so 65535 -> 255 (not stretched: one grey is one number in every file)
    32-bit integer grey   like 16-bit if it fits in 16 bits, else refused
    float grey            times 255 if within 0..1, rounded if within 0..255, else refused
    palette, CMYK, YCbCr  converted to RGB
    transparency          laid over white, which is how viewers and printed pages show it
    animation, pages      the first frame
    EXIF orientation      applied
    in Arrow or Parquet   bytes in a column, by the address of packed.py
    .npy                  a uint8 array (H, W) or (H, W, bands): the way in for more than 4 bands
    over MAX_PIXELS       refused from the header, before any pixel is decoded
    anything broken       MiradaError
"""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from mirada.data.packed import is_address, read_packed
from mirada.errors import MiradaError

ImageSource = str | os.PathLike | bytes | BinaryIO

# 80 megapixels is 240 MB of RGB: larger than any camera, small enough for a laptop, and below the
# size at which Pillow starts to warn, so that its limit is never the one that speaks.
MAX_PIXELS = 80_000_000
# Only formats that are decoded in-process: Pillow would hand EPS to Ghostscript.
FORMATS = ("JPEG", "PNG", "TIFF", "WEBP", "BMP", "GIF", "PPM", "JPEG2000", "AVIF")
EXTENSIONS = frozenset(
    ".jpg .jpeg .jpe .jfif .png .tif .tiff .webp .bmp .gif .ppm .pgm .pbm .pnm .jp2 .avif .npy".split()
)

_header_lock = threading.Lock()  # warning filters belong to the process; decoding itself runs in parallel


@dataclass(frozen=True)
class ImageHeader:
    """What is known without decoding. height and width are as displayed (EXIF orientation applied)."""

    height: int
    width: int
    mode: str
    format: str
    frames: int = 1


def read_header(source: ImageSource) -> ImageHeader:
    """Size, mode, format and number of frames of an image."""
    if _is_npy(source):
        array = _open_npy(source)
        return ImageHeader(array.shape[0], array.shape[1], f"{array.shape[2]} x uint8", "NPY")
    with _reported(source), _opened(source) as image:
        width, height = image.size
        if _is_rotated(image):
            width, height = height, width
        return ImageHeader(height, width, image.mode, image.format or "", getattr(image, "n_frames", 1))


def decode_image(source: ImageSource, target_size: tuple[int, int] | None = None) -> np.ndarray:
    """Image to uint8 (height, width, channels), following the table at the top of this file.

    With a target_size (height, width), a large JPEG is decoded at 1/2, 1/4 or 1/8 scale when that
    still leaves at least twice the target in both directions, which later resizing cannot tell.
    """
    if _is_npy(source):
        return np.array(_open_npy(source))
    with _reported(source), _opened(source) as image:
        if target_size is not None and image.format in ("JPEG", "MPO"):
            height, width = reversed(target_size) if _is_rotated(image) else target_size
            image.draft(None, (2 * width, 2 * height))
        return np.ascontiguousarray(_to_array(ImageOps.exif_transpose(image)))


@contextmanager
def open_image(source: ImageSource) -> Iterator[Image.Image]:
    """Pillow's image, its size checked; whatever goes wrong becomes one sentence."""
    with _reported(source), _opened(source) as image:
        yield image


def describe(source: ImageSource) -> str:
    """What to call a source in a message."""
    if isinstance(source, bytes):
        return "the given bytes"
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return str(getattr(source, "name", "the given stream"))


def _to_array(image: Image.Image) -> np.ndarray:
    mode = image.mode
    if mode.startswith("I"):
        return grey_from_integers(np.asarray(image))[..., None]
    if mode == "F":
        return _grey_from_floats(np.asarray(image))[..., None]
    if mode in ("1", "L"):
        if "transparency" in image.info:
            return over_white(np.asarray(image.convert("L").convert("LA")))
        return np.asarray(image.convert("L"))[..., None]
    if mode in ("LA", "La"):
        return over_white(np.asarray(image.convert("LA")))
    if mode in ("RGBA", "RGBa", "PA") or "transparency" in image.info:
        return over_white(np.asarray(image.convert("RGBA")))
    return np.asarray(image.convert("RGB"))


def over_white(pixels: np.ndarray) -> np.ndarray:
    """colour * alpha + white * (1 - alpha), in integers."""
    colour, alpha = pixels[..., :-1].astype(np.uint32), pixels[..., -1:].astype(np.uint32)
    return ((colour * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def grey_from_integers(values: np.ndarray) -> np.ndarray:
    if values.min() < 0 or values.max() > 65535:
        raise ValueError(f"its integer pixels span {values.min()}..{values.max()}, beyond 16 bits")
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _grey_from_floats(values: np.ndarray) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 255):  # also catches NaN
        raise ValueError(f"its float pixels span {low:g}..{high:g}, expected 0..1 or 0..255")
    return np.rint(values * (255 if high <= 1 else 1)).astype(np.uint8)


def _is_rotated(image: Image.Image) -> bool:
    return image.getexif().get(0x0112, 1) in (5, 6, 7, 8)


@contextmanager
def _opened(source: ImageSource) -> Iterator[Image.Image]:
    content = _content(source)
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    with _header_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        image = Image.open(stream, formats=FORMATS)
    with image:
        width, height = image.size
        check_pixels(height, width)
        yield image


def _content(source: ImageSource) -> ImageSource:
    """The bytes behind an address; anything else as it is."""
    return read_packed(source) if isinstance(source, str | os.PathLike) and is_address(source) else source


def check_pixels(height: int, width: int) -> None:
    if height * width > MAX_PIXELS:
        raise ValueError(
            f"it has {width} x {height} pixels, over the limit of {MAX_PIXELS // 10**6} million; cut or shrink it"
        )


@contextmanager
def _reported(source: ImageSource) -> Iterator[None]:
    """Turn anything that goes wrong inside into one sentence that names the file."""
    name = describe(source)
    try:
        yield
    except MiradaError:
        raise
    except FileNotFoundError:
        raise MiradaError(f"{name}: the file does not exist.") from None
    except PermissionError:
        raise MiradaError(f"{name}: the file may not be read (permission denied).") from None
    except UnidentifiedImageError:
        raise MiradaError(f"{name}: not an image that can be read ({_first_bytes(source)}).") from None
    except Image.DecompressionBombError:
        limit = MAX_PIXELS // 10**6
        raise MiradaError(f"{name}: it has over {limit} million pixels, the limit; cut or shrink it.") from None
    except Exception as error:  # Pillow's plugins raise a dozen types on damaged bytes
        raise MiradaError(f"{name}: cannot be decoded: {error}.") from error


def _first_bytes(source: ImageSource) -> str:
    source = _content(source)
    if isinstance(source, bytes):
        head = source[:64]
    elif isinstance(source, str | os.PathLike):
        with open(source, "rb") as stream:
            head = stream.read(64)
    else:
        return "unknown format"
    if not head:
        return "the file is empty"
    if head.startswith((b"II*\0", b"MM\0*")):
        return "a TIFF with bands that Pillow does not know; save the bands as a uint8 .npy array instead"
    return "it holds text" if all(byte >= 32 or byte in b"\t\r\n" for byte in head) else "unknown format"


def _is_npy(source: ImageSource) -> bool:
    return isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".npy"


def _open_npy(source: ImageSource) -> np.ndarray:
    with _reported(source):
        array = np.load(source, mmap_mode="r", allow_pickle=False)
        if array.dtype != np.uint8 or array.ndim not in (2, 3) or 0 in array.shape:
            raise ValueError(f"it holds {array.dtype} of shape {array.shape}, expected uint8 (H, W) or (H, W, bands)")
        check_pixels(*array.shape[:2])
        return array[..., None] if array.ndim == 2 else array
