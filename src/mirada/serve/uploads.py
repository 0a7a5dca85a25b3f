"""An uploaded file to pixels. Files are hostile: nothing of them is kept but the pixels, and those are counted first.

over max_pixels       refused from the header, before any pixel is decoded
truncated, damaged    refused with one sentence
animated, many pages  refused: which picture is meant is not known
two formats in one    an image with something else in or behind it is that image; the rest is never looked at
the name              the last part, without control characters, only ever shown as text
"""

from __future__ import annotations

import re

import numpy as np

from mirada.data.decode import decode_image, describe, open_image
from mirada.errors import MiradaError
from mirada.serve.refusals import Refused

MAX_NAME = 120


def pixels_of_upload(content: bytes, name: str, *, max_pixels: int, size: tuple[int, int] | None = None) -> np.ndarray:
    """uint8 (H, W, C) of the content of a file; with a `size`, see decode_image, large JPEGs may be decoded smaller."""
    shown = plain_name(name)
    try:
        with open_image(content) as image:
            width, height = image.size
            # Phones put a preview into some JPEGs, which Pillow then takes for a second picture.
            if image.format != "MPO" and getattr(image, "is_animated", False):
                raise Refused(415, f"{shown}: holds several pictures; send one at a time.")
        if width * height > max_pixels:
            raise Refused(413, f"{shown}: has {width} x {height} pixels, over the limit of {max_pixels:,}; shrink it.")
        return decode_image(content, size)
    except Refused:
        raise
    except MiradaError as error:
        # Pillow's own words on damaged files may hold anything, but they are short and stay text.
        raise Refused(415, str(error).replace(describe(content), shown, 1)[:300]) from error


def plain_name(name: str | None) -> str:
    """What to call an uploaded file: no folders, no control characters, not long."""
    last = re.split(r"[\\/]", name or "")[-1]
    return "".join(letter for letter in last if letter.isprintable())[:MAX_NAME].strip() or "image"
