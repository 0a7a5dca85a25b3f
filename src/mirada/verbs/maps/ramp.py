"""Colours of the bands of a map.

    colour(v) = ramp[⌈256 (v − low) / (high − low)⌉ − 1]

Low and high are the middle 98 % of a band, so that a few odd pixels do not take all colours. Applicability has two
colours that meet at 1, where the area of applicability ends: blue up to 1, orange beyond.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib import colormaps

from mirada.verbs.maps.preview import COLOURS, OTHER_COLOURS

NUM_COLOURS = 256
NUM_STOPS = 32  # colours of a legend
APPLICABILITY = "applicability"
INSIDE, OUTSIDE = ("Blues_r", 0.1, 0.65), ("Oranges", 0.35, 0.95)  # from the middle of nowhere to white is too pale
APPLICABILITY_LIMITS = (0.0, 2.0)  # thresholds


@lru_cache(maxsize=16)
def ramp(band: str) -> np.ndarray:
    """uint8 (256, 3)."""
    if band == APPLICABILITY:
        half = NUM_COLOURS // 2
        sides = [colormaps[name](np.linspace(first, last, half)) for name, first, last in (INSIDE, OUTSIDE)]
        coloured = np.concatenate(sides)
    else:
        coloured = colormaps[COLOURS.get(band, OTHER_COLOURS)](np.linspace(0, 1, NUM_COLOURS))
    colours = np.round(255 * coloured[:, :3]).astype(np.uint8)
    colours.setflags(write=False)
    return colours


def limits(band: str, values: np.ndarray) -> tuple[float, float]:
    """What the first and the last colour stand for."""
    if band == APPLICABILITY:
        return APPLICABILITY_LIMITS
    found = values[np.isfinite(values)]
    if not len(found):
        return 0.0, 1.0
    low, high = (float(value) for value in np.percentile(found, (1, 99)))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def stops(band: str) -> list[str]:
    """'#rrggbb' from low to high, each for an equal part of the scale: that of the legend."""
    parts = ramp(band).reshape(NUM_STOPS, -1, 3)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in parts[:, parts.shape[1] // 2]]


def coloured(values_hw: np.ndarray, band: str, low: float, high: float) -> np.ndarray:
    """uint8 (h, w, 4), transparent where there is no data."""
    has_data = np.isfinite(values_hw)
    share = (np.where(has_data, values_hw, low).astype(np.float64) - low) / (high - low)
    index = np.ceil(share * NUM_COLOURS) - 1  # so that 1 itself is inside the area of applicability
    picture = np.zeros((*values_hw.shape, 4), np.uint8)
    picture[..., :3] = ramp(band)[index.clip(0, NUM_COLOURS - 1).astype(np.intp)]
    picture[..., 3] = np.where(has_data, 255, 0)
    picture[~has_data] = 0
    return picture
