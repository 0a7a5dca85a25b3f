"""Samples with a place: one row per plot, station or sighting. Shape letters: N rows, D covariates."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from mirada.data.geo.chips import Chips

Kind = Literal["csv", "parquet", "gpkg", "geojson", "npz"]


@dataclass(frozen=True, eq=False)
class Plots:
    """Where each sample lies, what was measured there, and what is known about the place.

    xy_N2 are coordinates in `crs`, the first to the east, the second to the north, whatever order its authority uses:
    of EPSG:4326 longitude comes first.
    """

    source: str
    kind: Kind
    xy_N2: np.ndarray  # float64
    crs: str  # 'EPSG:27200'
    lonlat_N2: np.ndarray  # float64, degrees of EPSG:4326
    targets_N: np.ndarray  # float32
    target_name: str
    covariates_ND: np.ndarray  # float32, NaN where missing
    covariate_names: tuple[str, ...] = ()  # a year is called 'year'
    chips: Chips | None = None
    splits: np.ndarray | None = None  # (N,) of 'train' | 'val' | 'test', when the source gives them
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()  # what was decided while reading, in plain sentences

    def __post_init__(self) -> None:
        assert self.xy_N2.shape == self.lonlat_N2.shape == (len(self), 2)
        assert self.covariates_ND.shape == (len(self), len(self.covariate_names))
        for column in (self.splits, self.names, self.chips):
            assert column is None or len(column) == len(self)

    def __len__(self) -> int:
        return len(self.targets_N)

    def name(self, row: int) -> str:
        """What to call this row in a message or a results file."""
        return f"{Path(self.source).name}[{row}]" if self.names is None else self.names[row]

    def subset(self, rows: np.ndarray) -> Plots:
        """The same plots with only these rows, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            xy_N2=self.xy_N2[rows],
            lonlat_N2=self.lonlat_N2[rows],
            targets_N=self.targets_N[rows],
            covariates_ND=self.covariates_ND[rows],
            chips=None if self.chips is None else self.chips.subset(rows),
            splits=None if self.splits is None else self.splits[rows],
            names=None if self.names is None else tuple(self.names[row] for row in rows),
        )

    def checksum(self) -> str:
        """SHA-256 of the places, the targets and all that is known; not of where the file lies or how it is split."""
        bands = () if self.chips is None else self.chips.band_names
        digest = hashlib.sha256(repr((self.crs, self.target_name, self.covariate_names, bands)).encode())
        arrays = [self.xy_N2, self.targets_N, self.covariates_ND]
        if self.chips is not None:
            arrays += [self.chips.pixels_NCHW, self.chips.lonlat_N2HW]
        for array in arrays:
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()
