"""Recognise the same image again: exactly (a hash of its pixels or bytes) or nearly (a difference hash)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from mirada.data.packed import is_address, read_packed
from mirada.data.resize import fit_image, match_channels


def pixel_hash(pixels: np.ndarray) -> bytes:
    """16 bytes that depend on the pixels and their shape, not on the file format that carried them."""
    digest = hashlib.blake2b(str(pixels.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


def row_hashes(images: np.ndarray) -> list[bytes]:
    """The pixel hash of every image of an array (N, ...)."""
    return [pixel_hash(image) for image in images]


def file_hash(path: str) -> bytes:
    """16 bytes from the bytes of an image file: for sets too large to decode twice."""
    digest = hashlib.blake2b(digest_size=16)
    with io.BytesIO(read_packed(path)) if is_address(path) else open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.digest()


def difference_hash(pixels: np.ndarray) -> int:
    """64 bits: is each pixel of an 8 x 9 grey version darker than the next one? Survives re-encoding and scaling."""
    grey = match_channels(pixels[..., :1] if pixels.shape[2] not in (1, 3) else pixels, 1)
    small = fit_image(grey, (8, 9), "squash")[..., 0].astype(np.int16)
    return int.from_bytes(np.packbits(small[:, :-1] < small[:, 1:]).tobytes(), "big")


def same_rows(keys: Sequence[object]) -> list[list[int]]:
    """Groups of two or more rows with an equal key, in order of first appearance; None never matches."""
    rows: dict[object, list[int]] = {}
    for row, key in enumerate(keys):
        if key is not None:
            rows.setdefault(key, []).append(row)
    return [group for group in rows.values() if len(group) > 1]


def near_rows(hashes: Sequence[int | None], max_bits: int = 3) -> list[tuple[int, int]]:
    """Pairs of rows whose 64-bit hashes differ in at most max_bits bits (up to 3).

    Four 16-bit bands: with three bits changed, at least one band is unchanged, so only rows that
    share a band are compared.
    """
    assert max_bits <= 3
    # All-equal bits come from flat images, which are alike without being copies.
    flat = (0, (1 << 64) - 1)
    known = [(row, value) for row, value in enumerate(hashes) if value is not None and value not in flat]
    pairs: set[tuple[int, int]] = set()
    for shift in (0, 16, 32, 48):
        buckets: dict[int, list[tuple[int, int]]] = {}
        for row, value in known:
            buckets.setdefault((value >> shift) & 0xFFFF, []).append((row, value))
        for bucket in buckets.values():
            if len(bucket) > 500:  # a band shared by that many says nothing
                continue
            for (row, value), (other, other_value) in combinations(bucket, 2):
                if (value ^ other_value).bit_count() <= max_bits:
                    pairs.add((row, other))
    return sorted(pairs)
