"""From what a file holds to plots: rows without a place or a target are left out, the rest is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mirada.data.geo.columns import Measured
from mirada.data.geo.coordinates import checked_lonlat
from mirada.data.geo.crs import LONLAT
from mirada.data.geo.plots import Kind, Plots
from mirada.errors import MiradaError

if TYPE_CHECKING:
    from mirada.data.geo.chips import Chips

LEAST = 20  # with fewer points nothing can be held out


def assemble_plots(
    source: str,
    kind: Kind,
    xy_N2: np.ndarray,
    crs: str,
    measured: Measured,
    *,
    columns: tuple[str, str] = ("x", "y"),
    chips: Chips | None = None,
) -> Plots:
    """`columns` are what the two coordinates are called in messages."""
    where = Path(source).name
    has_place_N = np.isfinite(xy_N2).all(axis=1)
    has_target_N = np.isfinite(measured.targets_N)
    if not has_place_N.any():
        raise MiradaError(f"{where}: no row has numbers in both {columns[0]} and {columns[1]}; check the coordinates.")
    kept = np.flatnonzero(has_place_N & has_target_N)
    if not len(kept):
        raise MiradaError(f"{where}: no row has both a place and a number in {measured.target_name}; fill them in.")
    plots, notes = placed(kept, source, kind, xy_N2, crs, measured, columns, chips)
    require_enough(plots)
    for num, what in ((int((~has_place_N).sum()), "coordinates"), (int((~has_target_N).sum()), measured.target_name)):
        notes += (f"{where}: {num:,} of {len(xy_N2):,} rows have no number in {what} and are left out.",) if num else ()
    num_repeated = len(plots) - len(np.unique(plots.xy_N2, axis=0))
    if num_repeated:
        notes += (f"{where}: {num_repeated:,} of {len(plots):,} rows lie exactly where another one does.",)
    return replace(plots, notes=(*measured.notes, *notes))


def placed(
    kept: np.ndarray,
    source: str,
    kind: Kind,
    xy_N2: np.ndarray,
    crs: str,
    measured: Measured,
    columns: tuple[str, str],
    chips: Chips | None = None,
) -> tuple[Plots, tuple[str, ...]]:
    """The plots of these rows, which all have a place, and what is odd about their coordinates."""
    lonlat_N2 = np.full(xy_N2.shape, np.nan)
    lonlat_N2[kept], notes = checked_lonlat(xy_N2[kept], crs, columns, Path(source).name)
    every = Plots(
        source=source,
        kind=kind,
        xy_N2=lonlat_N2 if crs == LONLAT else xy_N2,
        crs=crs,
        lonlat_N2=lonlat_N2,
        targets_N=measured.targets_N.astype(np.float32),
        target_name=measured.target_name,
        covariates_ND=np.array(list(measured.covariates.values()), np.float32).reshape(-1, len(xy_N2)).T,
        covariate_names=tuple(measured.covariates),
        chips=chips,
        splits=measured.splits,
        names=measured.names,
    )
    return every.subset(kept), notes


def require_enough(plots: Plots) -> None:
    """Points enough to hold some out, and a target that varies."""
    where = Path(plots.source).name
    if len(plots) < LEAST:
        raise MiradaError(
            f"{where}: {len(plots)} usable points are too few to train and test; expected {LEAST} or more."
        )
    if plots.targets_N.min() == plots.targets_N.max():
        value = plots.targets_N[0]
        raise MiradaError(f"{where}: {plots.target_name} is {value:g} in every row, so there is nothing to predict.")
