"""Images that come as arrays: NumPy .npz archives."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mirada.data.labels import Labels, encode_array
from mirada.data.table import ImageTable, Task, canonical_split
from mirada.errors import MiradaError

MAX_BYTES = 16 << 30  # uncompressed; an archive can claim far more than its size on disk
IMAGE_WORDS = ("x", "images", "image", "data", "imgs")
LABEL_WORDS = ("y", "labels", "label", "target", "targets")


def read_npz(path: Path, class_names: Sequence[str] | None, task: Task | None, source: str) -> ImageTable:
    """x and y, or x_train, y_train, x_test, y_test (or train_images, train_labels...), and optionally class_names."""
    arrays = load_npz(path)
    if class_names is None and "class_names" in arrays:
        class_names = [str(name) for name in arrays["class_names"].tolist()]
    parts = _pair_up(arrays, path)
    pixels, labels, notes = [], [], []
    splits: list[str] = []
    for split, image_key, label_key in parts:
        images, note = images_from_array(arrays[image_key], f"{path.name}[{image_key}]")
        if len(images) != len(arrays[label_key]):
            raise MiradaError(
                f"{path}: {image_key} has {len(images)} images but {label_key} has {len(arrays[label_key])} labels; "
                "they must have the same length."
            )
        pixels.append(images)
        labels.append(arrays[label_key])
        splits += [split or ""] * len(images)
        notes += [note] if note else []
    if len({images.shape[1:] for images in pixels}) > 1 or len({array.shape[1:] for array in labels}) > 1:
        raise MiradaError(f"{path}: the splits have images or labels of different shapes, expected the same.")
    encoded = encode_array(np.concatenate(labels), class_names, task, path.name)
    given = splits if "" not in splits and len(set(splits)) > 1 else None
    return table_from_arrays(np.concatenate(pixels), encoded, given, source, "npz", tuple(notes))


def table_from_arrays(
    pixels: np.ndarray, labels: Labels, splits: list[str] | None, source: str, kind: str, notes: tuple[str, ...] = ()
) -> ImageTable:
    return ImageTable(
        source=source,
        kind=kind,
        task=labels.task,
        targets=labels.targets,
        class_names=labels.class_names,
        target_names=labels.target_names,
        pixels=pixels,
        splits=None if splits is None else np.array(splits),
        notes=labels.notes + notes,
    )


def images_from_array(images: np.ndarray, where: str) -> tuple[np.ndarray, str]:
    """(N, H, W), (N, H, W, C) or (N, C, H, W) of any number type to uint8 (N, H, W, C), and a note on what was done."""
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise MiradaError(
            f"{where}: shape {images.shape}, expected (N, height, width) or (N, height, width, channels)."
        )
    images, note = _to_uint8(images, where)
    if images.ndim == 3:
        return images[..., None], note
    if images.shape[1] in (1, 3, 4) and images.shape[3] > 4:
        note = " ".join(filter(None, (note, f"{where}: shape {images.shape} taken as (N, channels, height, width).")))
        images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return images, note


def _to_uint8(images: np.ndarray, where: str) -> tuple[np.ndarray, str]:
    if images.dtype == np.uint8:
        return images, ""
    if images.dtype == bool:
        return images.astype(np.uint8) * 255, f"{where}: true/false taken as 255/0."
    if images.dtype.kind not in "iuf":
        raise MiradaError(f"{where}: images are {images.dtype}, expected uint8, or numbers in 0..1 or 0..255.")
    low, high = images.min(), images.max()
    if images.dtype.kind == "f" and low >= 0 and high <= 1:
        return np.rint(images * 255).astype(np.uint8), f"{where}: {images.dtype} in 0..1 taken times 255."
    if low >= 0 and high <= 255:
        return np.rint(images).astype(np.uint8), f"{where}: {images.dtype} in 0..255 rounded to 8 bits."
    if images.dtype == np.uint16:
        return ((images.astype(np.uint32) + 128) // 257).astype(np.uint8), f"{where}: 16 bits divided by 257."
    raise MiradaError(f"{where}: values span {low}..{high}, expected 0..1 or 0..255; undo the normalisation first.")


def names_in(path: Path) -> list[str]:
    """Of the arrays of an archive, which is not read; none if it is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [member.removesuffix(".npy") for member in archive.namelist()]
    except (zipfile.BadZipFile, OSError):
        return []


def load_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise MiradaError(f"{path}: holds {size >> 30} GiB, over the limit of {MAX_BYTES >> 30}; use image files.")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except MiradaError:
        raise
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise MiradaError(
                f"{path}: it contains Python objects, which could run code when loaded; "
                "save plain arrays (images as uint8, class names as text)."
            ) from None
        raise MiradaError(f"{path}: not a readable .npz archive ({error}).") from None
    except Exception as error:  # a damaged zip raises zlib, struct, EOF and zipfile errors
        raise MiradaError(f"{path}: not a readable .npz archive ({error}).") from None


def _pair_up(arrays: dict[str, np.ndarray], path: Path) -> list[tuple[str | None, str, str]]:
    """[(split, image key, label key)] in the order train, val, test."""
    roles: dict[tuple[str, str | None], str] = {}
    for key in arrays:
        words = re.split(r"[_\-.]", key.lower())
        split = next(filter(None, map(canonical_split, words)), None)
        rest = [word for word in words if canonical_split(word) is None]
        if len(rest) == 1 and rest[0] in IMAGE_WORDS:
            roles["images", split] = key
        elif len(rest) == 1 and rest[0] in LABEL_WORDS:
            roles["labels", split] = key
    pairs = [
        (split, roles["images", split], roles["labels", split])
        for split in (None, "train", "val", "test")
        if ("images", split) in roles and ("labels", split) in roles
    ]
    if not pairs:
        raise MiradaError(
            f"{path}: the arrays are {', '.join(arrays) or 'none'}, "
            "expected x and y, or x_train, y_train, x_test, y_test."
        )
    return pairs
