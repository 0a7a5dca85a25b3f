"""Colours of classes, told apart with any kind of colour vision (Okabe and Ito 2008), the background without one."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

import numpy as np

from mirada.data.masks.classes import IGNORED, is_background

FIRST = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
GREY = (128, 128, 128)  # pixels that count for nothing
OPACITY = 0.55


def colours_of(class_names: Sequence[str]) -> list[np.ndarray]:
    """uint8 RGB of each class; black of the background."""
    found, number = [], 0
    for name in class_names:
        if is_background(name):
            found.append(np.zeros(3, np.uint8))
            continue
        found.append(_colour(number))
        number += 1
    return found


def _colour(number: int) -> np.ndarray:
    if number < len(FIRST):
        return np.array([int(FIRST[number][i : i + 2], 16) for i in (1, 3, 5)], np.uint8)
    turn = (number * 0.61803) % 1.0  # golden ratio: however many there are, neighbours differ
    return np.array([round(255 * part) for part in colorsys.hsv_to_rgb(turn, 0.65, 0.9)], np.uint8)


def palette_of(class_names: Sequence[str]) -> list[int]:
    """256 × RGB for a palette PNG, whose numbers are those of the classes."""
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(class_names)] = colours_of(class_names)
    palette[IGNORED] = GREY
    return palette.ravel().tolist()


def coloured(picture_HW3: np.ndarray, mask_HW: np.ndarray, class_names: Sequence[str]) -> np.ndarray:
    """The image under its mask; what is background stays as it is, what counts for nothing is grey."""
    palette = np.array(palette_of(class_names), np.float64).reshape(256, 3)
    is_plain = np.array([is_background(name) for name in class_names])
    opacity = np.full(256, OPACITY)
    opacity[: len(class_names)][is_plain] = 0.0
    share = opacity[mask_HW][..., None]
    return np.rint((1 - share) * picture_HW3 + share * palette[mask_HW]).astype(np.uint8)
