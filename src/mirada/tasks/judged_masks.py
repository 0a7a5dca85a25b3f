"""Masks that were predicted of held-out images, in a file beside the run. Shape letters: N images, K shown, C, H, W."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mirada.errors import MiradaError


@dataclass(frozen=True, eq=False)
class JudgedMasks:
    """At the size of training; `shown` are the places of the worst and the best of them, `images` their pixels."""

    predicted: np.ndarray  # uint8 (N, H, W)
    targets: np.ndarray  # uint8 (N, H, W), IGNORED where it counts for nothing
    rows: np.ndarray  # (N,) of the data
    shown: np.ndarray  # (K,) into these, the worst first
    images: np.ndarray  # uint8 (K, C, H, W)

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        np.savez_compressed(stream, **vars(self))
        return stream.getvalue()

    @classmethod
    def read(cls, path: Path) -> JudgedMasks:
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(**{name: archive[name] for name in ("predicted", "targets", "rows", "shown", "images")})
        except Exception as error:  # a damaged zip raises half a dozen types
            raise MiradaError(f"{path}: cannot be read ({error}); restore it or train again.") from None
