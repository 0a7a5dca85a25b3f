"""Real images that come with scikit-learn: no network needed."""

from __future__ import annotations

import numpy as np

from mirada.data.table import ImageTable
from mirada.errors import MiradaError

PHOTO_PATCH = 32


def read_sample(name: str) -> ImageTable:
    """'digits' or 'photos'."""
    if name not in SAMPLES:
        raise MiradaError(f"{name!r} is not a sample set, expected one of {', '.join(SAMPLES)}.")
    return SAMPLES[name]()


def _digits() -> ImageTable:
    """1,797 handwritten digits, 8 x 8 grey; 0..16 becomes 0..255."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return ImageTable(
        source="digits",
        kind="sample",
        task="single-label",
        targets=bunch.target.astype(np.int64),
        class_names=tuple("0123456789"),
        pixels=np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., None],
        notes=("digits: the 1,797 handwritten digits of scikit-learn, 8 x 8 grey.",),
    )


def _photos() -> ImageTable:
    """Which of two photographs does a 32 x 32 patch come from? Colour, but a toy, and it says so.

    Neighbouring patches look alike, so a random split would leak: each vertical strip, four patches
    wide, is a group and stays on one side.
    """
    from sklearn.datasets import load_sample_images

    pixels, targets, groups = [], [], []
    for label, photo in enumerate(load_sample_images().images):
        rows, columns = photo.shape[0] // PHOTO_PATCH, photo.shape[1] // PHOTO_PATCH
        cut = photo[: rows * PHOTO_PATCH, : columns * PHOTO_PATCH]
        patches = cut.reshape(rows, PHOTO_PATCH, columns, PHOTO_PATCH, 3).swapaxes(1, 2)
        pixels.append(patches.reshape(-1, PHOTO_PATCH, PHOTO_PATCH, 3))
        targets += [label] * (rows * columns)
        groups += [label * 1000 + column // 4 for _ in range(rows) for column in range(columns)]
    return ImageTable(
        source="photos",
        kind="sample",
        task="single-label",
        targets=np.array(targets, np.int64),
        class_names=("temple", "flower"),
        pixels=np.concatenate(pixels),
        groups=np.array(groups, np.int64),
        notes=("photos: 520 patches of scikit-learn's two sample photographs; a smoke test, not a benchmark.",),
    )


SAMPLES = {"digits": _digits, "photos": _photos}
