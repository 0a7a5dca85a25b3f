"""Images and their masks before they are read at one size. Shape letters: N rows, C classes, H height, W width."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mirada.data.arrays import images_from_array, load_npz, names_in
from mirada.data.decode import decode_image, read_header
from mirada.data.masks.class_table import read_class_table
from mirada.data.masks.classes import Code, Given, MaskClasses, names_colours, resolve_classes
from mirada.data.masks.decode_mask import codes_of_array, decode_mask
from mirada.data.masks.pairs import Pair, find_pairs, inner_folder
from mirada.data.table import canonical_split
from mirada.errors import MiradaError


@dataclass(frozen=True, eq=False)
class MaskTable:
    """Pairs of files, or two arrays of an archive."""

    source: str
    kind: str  # 'mask folders' | 'mask npz'
    classes: MaskClasses
    pixels_NC: np.ndarray  # of each class in each mask
    ignored_N: np.ndarray  # pixels that count for nothing
    sizes_N2: np.ndarray  # (height, width)
    pairs: tuple[Pair, ...] = ()
    arrays: tuple[np.ndarray, np.ndarray] | None = None  # images uint8 (N, H, W, C), codes (N, H, W)
    splits: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sizes_N2)

    def name(self, row: int) -> str:
        return str(self.pairs[row].image) if self.pairs else f"{Path(self.source).name}[{row}]"

    def read_image(self, row: int) -> np.ndarray:
        """uint8 (H, W, channels)."""
        return decode_image(self.pairs[row].image) if self.arrays is None else self.arrays[0][row]

    def read_mask(self, row: int) -> np.ndarray:
        """uint8 (H, W): numbers of classes, IGNORED where it counts for nothing."""
        if self.arrays is not None:
            return self.classes.numbered(self.arrays[1][row], self.name(row))
        path = self.pairs[row].mask
        decoded = decode_mask(path)
        return self.classes.numbered(decoded.colours_HW if self.classes.are_colours else decoded.codes_HW, str(path))


def is_masks(source: str | os.PathLike) -> bool:
    """A folder of images and masks, or an archive with an array of masks."""
    path = Path(source)
    if path.is_dir():
        return find_pairs(path) is not None
    return path.suffix.lower() == ".npz" and bool(_mask_keys(names_in(path)))


def open_masks(source: str | os.PathLike, *, classes: Given | None, ignore: Sequence[Code] | None) -> MaskTable:
    """Look at every mask once: which classes there are, and whether every mask fits its image."""
    path = Path(source)
    if path.suffix.lower() == ".npz":
        return _of_archive(path, classes, ignore)
    found = find_pairs(path)
    assert found is not None, "asked of a source that holds no masks"
    pairs, notes = found
    given = classes or read_class_table(path) or read_class_table(inner_folder(path))
    return _of_pairs(path, tuple(pairs), given, ignore, notes)


def _of_pairs(
    path: Path, pairs: tuple[Pair, ...], given: Given | None, ignore: Sequence[Code] | None, notes: tuple[str, ...]
) -> MaskTable:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        looked_at = list(pool.map(_look_at, pairs))
    are_colours = any(colour_of is None for _, colour_of, _ in looked_at) or names_colours(given, ignore)
    # A mask may have greys only, or a palette, among colours.
    counted = [_as_colours(counts, colour_of) if are_colours else counts for counts, colour_of, _ in looked_at]
    pixels: Counter[int] = Counter()
    for counts in counted:
        pixels.update(counts)
    resolved, said = resolve_classes(pixels, are_colours, given, ignore, str(path))
    counts_NC = np.array([[counts.get(code, 0) for code in resolved.codes] for counts in counted])
    for pair, counts, known_C in zip(pairs, counted, counts_NC, strict=True):
        left_out = sum(counts.get(code, 0) for code in resolved.ignored)
        if left_out + known_C.sum() < sum(counts.values()):
            unknown = next(code for code in counts if code not in (*resolved.codes, *resolved.ignored))
            resolved.numbered(np.full((1, counts[unknown]), unknown), str(pair.mask))  # says that it is no class
    splits = [pair.split for pair in pairs]
    is_divided = None not in splits and "train" in splits and len(set(splits)) > 1
    if not is_divided and any(split not in (None, "train") for split in splits):
        notes = (*notes, "some images are in no folder called train, val or test, so that division is not used.")
    return _table(
        str(path),
        "mask folders",
        resolved,
        counts_NC,
        np.array([size for _, _, size in looked_at]),
        pairs=pairs,
        splits=np.array(splits) if is_divided else None,
        notes=(*notes, *said),
    )


def _look_at(pair: Pair) -> tuple[dict[int, int], np.ndarray | None, tuple[int, int]]:
    """Pixels of every code, the colours of numbers, and the size."""
    decoded = decode_mask(pair.mask)
    header = read_header(pair.image)
    height, width = decoded.codes_HW.shape
    if (header.height, header.width) != (height, width):
        raise MiradaError(
            f"{pair.mask}: is {width} x {height} pixels, but its image {pair.image.name} is {header.width} x "
            f"{header.height}; a mask has the size of its image."
        )
    codes, counts = np.unique(decoded.codes_HW, return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True)), decoded.colour_of, (height, width)


def _as_colours(counts: Mapping[int, int], colour_of: np.ndarray | None) -> Mapping[int, int]:
    if colour_of is None:
        return counts
    found: Counter[int] = Counter()
    for number, count in counts.items():
        found[int(colour_of[number])] += count
    return found


def _of_archive(path: Path, given: Given | None, ignore: Sequence[Code] | None) -> MaskTable:
    arrays = load_npz(path)
    if given is None and "class_names" in arrays:
        given = [str(name) for name in arrays["class_names"].tolist()]
    images, codes, splits, notes = [], [], [], []
    for split, (image_key, mask_key) in _mask_keys(list(arrays)).items():
        pixels, note = images_from_array(arrays[image_key], f"{path.name}[{image_key}]")
        masks = codes_of_array(arrays[mask_key], f"{path.name}[{mask_key}]")
        if masks.shape != pixels.shape[:3]:
            raise MiradaError(
                f"{path}: {image_key} is {pixels.shape[:3]} (images, height, width), but {mask_key} is {masks.shape}; "
                "a mask has the size of its image."
            )
        images.append(pixels)
        codes.append(masks)
        splits += [split] * len(pixels)
        notes += [note] if note else []
    if len({array.shape[1:] for array in images}) > 1:
        raise MiradaError(f"{path}: the splits have images of different shapes, expected the same.")
    all_images, all_codes = np.concatenate(images), np.concatenate(codes)
    counts_NV = np.stack([np.bincount(mask.ravel(), minlength=256) for mask in all_codes])
    totals = {code: int(count) for code, count in enumerate(counts_NV.sum(0)) if count}
    resolved, said = resolve_classes(totals, False, given, ignore, str(path))
    for row, mask in enumerate(all_codes):
        resolved.numbered(mask, f"{path.name}[{row}]")
    return _table(
        str(path),
        "mask npz",
        resolved,
        np.stack([counts_NV[:, code] if 0 <= code < 256 else 0 * counts_NV[:, 0] for code in resolved.codes], axis=1),
        np.full((len(all_images), 2), all_images.shape[1:3]),
        arrays=(all_images, all_codes),
        splits=np.array(splits) if "" not in splits and len(set(splits)) > 1 else None,
        notes=(*notes, *said),
    )


def _table(
    source: str, kind: str, classes: MaskClasses, pixels_NC: np.ndarray, sizes_N2: np.ndarray, **more: object
) -> MaskTable:
    table = MaskTable(source, kind, classes, pixels_NC, sizes_N2.prod(1) - pixels_NC.sum(1), sizes_N2, **more)  # type: ignore[arg-type]
    if (blank := np.flatnonzero(pixels_NC.sum(1) == 0)).size:
        raise MiradaError(
            f"{table.name(int(blank[0]))}: its mask has only pixels that count for nothing ({len(blank)} of "
            f"{len(table)} masks); take it away, or change data.ignore."
        )
    return table


def _mask_keys(keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """split → (images, masks); '' for arrays without a split in their names."""
    roles: dict[str, dict[str, str]] = {}
    for key in keys:
        words = key.lower().replace("-", "_").split("_")
        split = next(filter(None, map(canonical_split, words)), "")
        rest = [word for word in words if canonical_split(word) is None]
        role = {"images": "images", "x": "images", "masks": "masks"}.get(rest[0] if len(rest) == 1 else "")
        if role:
            roles.setdefault(split, {})[role] = key
    order = ("", "train", "val", "test")
    return {split: (roles[split]["images"], roles[split]["masks"]) for split in order if len(roles.get(split, {})) == 2}
