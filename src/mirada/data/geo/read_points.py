"""Places to ask a trained model about: points with the bands and covariates that it knows, by name.

What a model needs of a place may come from three sides: ready chips, columns, and rasters. A row that lacks a place or
lies outside the rasters is not left out in silence: it is kept with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mirada.data.geo.assemble import placed
from mirada.data.geo.chips import Chips, cut_chips
from mirada.data.geo.column_names import DEGREES, listed, pair_of
from mirada.data.geo.columns import Measured, PlotColumns, find_coordinates, read_known
from mirada.data.geo.crs import LONLAT, canonical_crs
from mirada.data.geo.numbers import numbers_of
from mirada.data.geo.plots import Kind, Plots
from mirada.data.geo.rasters import Rasters, open_rasters
from mirada.data.geo.read_chips import read_chip_archive
from mirada.data.geo.read_vector import ENDINGS, read_vector
from mirada.data.tabular import Columns, is_table, read_columns
from mirada.errors import MiradaError


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of a source that a model can be asked about, and why it cannot be asked about the others."""

    plots: Plots  # targets are NaN unless they were asked for
    rows_N: np.ndarray  # of the source
    reasons: dict[int, str]  # by row of the source
    names: tuple[str, ...]  # of all rows of the source

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Needs:
    """What a model wants to know of a place."""

    bands: tuple[str, ...]
    covariates: tuple[str, ...]
    chip_size: int
    target: str | None = None  # None: it is not judged


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a file holds."""

    source: str
    kind: Kind
    xy_N2: np.ndarray
    crs: str
    measured: Measured
    columns: tuple[str, str]  # what the coordinates are called
    chips: Chips | None = None


def open_points(
    source: str | os.PathLike,
    needs: Needs,
    *,
    x: str | None = None,
    y: str | None = None,
    crs: str | None = None,
    rasters: Sequence[str | os.PathLike] = (),
) -> Points:
    """Read points and all that `needs` names of them.

    x, y, crs: of a table; `crs` is what its coordinates are in if they are not called longitude and latitude.
    rasters:   GeoTIFFs with the bands, and with the covariates that no column is called by.
    """
    path = Path(source)
    if not path.is_file():
        raise MiradaError(f"{source}: no such file, expected a table, .gpkg, .geojson or .npz of points.")
    if path.suffix.lower() == ".npz":
        rows = _archive(path, str(source), needs)
    elif path.suffix.lower() in ENDINGS:
        rows = _vector(path, str(source), needs)
    elif is_table(path):
        rows = _table(path, str(source), needs, PlotColumns(x=x, y=y), crs)
    else:
        raise MiradaError(f"{source}: cannot read {path.suffix or 'this'}; expected a table, .gpkg, .geojson or .npz.")
    points = _with_a_place(rows)
    missing = [name for name in needs.covariates if name not in points.plots.covariate_names]
    if not missing and (not needs.bands or rows.chips is not None):
        return _ordered(points, needs)
    if not rasters:
        what = listed([*([] if rows.chips is not None else needs.bands), *missing])
        raise MiradaError(f"{source}: the model also needs {what}; add columns, or give rasters that have them.")
    return _ordered(_with_rasters(points, needs, missing, rasters), needs)


def require_called(rasters: Rasters, covariates: Sequence[str]) -> None:
    """Covariates come by name only: unlike the bands of an image they have no order that anybody keeps."""
    missing = [name for name in covariates if name not in rasters.band_names]
    if missing:
        raise MiradaError(
            f"{', '.join(rasters.paths)}: no band is called {listed(missing)}, which the model predicts from; they "
            f"are {listed(rasters.band_names)}: give rasters with bands of these names."
        )


def _table(path: Path, name: str, needs: Needs, choice: PlotColumns, crs: str | None) -> _Rows:
    columns = read_columns(path)
    is_told = choice.x is not None or pair_of(columns, DEGREES) is None
    x, y, crs = find_coordinates(columns, choice, canonical_crs(crs) if crs and is_told else None, path.name)
    xy_N2 = np.stack([numbers_of(columns[column]).values_N for column in (x, y)], axis=1)
    kind: Kind = "parquet" if path.suffix.lower() == ".parquet" else "csv"
    return _Rows(name, kind, xy_N2, crs, _known(columns, len(xy_N2), needs, path.name), (x, y))


def _vector(path: Path, name: str, needs: Needs) -> _Rows:
    columns, xy_N2, crs = read_vector(path, None)
    measured = _known(columns, len(xy_N2), needs, path.name)
    return _Rows(name, ENDINGS[path.suffix.lower()], xy_N2, crs, measured, ("x", "y"))


def _known(columns: Columns, num_rows: int, needs: Needs, where: str) -> Measured:
    return read_known(columns, num_rows, needs.covariates, needs.target, where)


def _archive(path: Path, name: str, needs: Needs) -> _Rows:
    found = read_chip_archive(path, needs.target, needs_target=needs.target is not None)
    size = found.pixels_NCHW.shape[-1]
    if size != needs.chip_size:
        raise MiradaError(f"{name}: its chips have {size} pixels a side, but the model sees {needs.chip_size}.")
    if len(found.band_names) != len(needs.bands):
        raise MiradaError(
            f"{name}: its chips have {len(found.band_names)} bands, {listed(found.band_names)}, but the model needs "
            f"{len(needs.bands)}, {listed(needs.bands)}."
        )
    is_known = set(found.band_names) == set(needs.bands)
    order = [found.band_names.index(band) for band in needs.bands] if is_known else slice(None)
    middle = size // 2
    is_whole_N = np.isfinite(found.lonlat_N2HW).all(axis=(1, 2, 3))
    xy_N2 = np.where(is_whole_N[:, None], found.lonlat_N2HW[:, :, middle, middle], np.nan)
    chips = Chips(found.pixels_NCHW[:, order], found.lonlat_N2HW.astype(np.float32), needs.bands)
    covariates = {name: values for name, values in found.covariates.items() if name in needs.covariates}
    measured = Measured(found.target_name, found.targets_N, covariates, None, None, found.notes)
    return _Rows(name, "npz", xy_N2, LONLAT, measured, ("lon", "lat"), chips)


def _with_a_place(rows: _Rows) -> Points:
    reasons: dict[int, str] = {}
    for wrong_N, why in (
        (~np.isfinite(rows.xy_N2).all(axis=1), f"has no number in {rows.columns[0]} or {rows.columns[1]}"),
        (np.isnan(rows.measured.targets_N) & bool(rows.measured.target_name), f"has no {rows.measured.target_name}"),
        (_is_empty(rows.chips, len(rows.xy_N2)), "has no data in the middle of its chip"),
    ):
        reasons |= dict.fromkeys(np.flatnonzero(wrong_N).tolist(), why)
    kept = np.array([row for row in range(len(rows.xy_N2)) if row not in reasons], dtype=np.int64)
    if not len(kept):
        raise MiradaError(f"{rows.source}: no row can be used; the first {reasons[0]}.")
    plots, notes = placed(kept, rows.source, rows.kind, rows.xy_N2, rows.crs, rows.measured, rows.columns, rows.chips)
    stem = Path(rows.source).name
    names = rows.measured.names or tuple(f"{stem}[{row}]" for row in range(len(rows.xy_N2)))
    return Points(replace(plots, notes=(*rows.measured.notes, *notes)), kept, reasons, names)


def _is_empty(chips: Chips | None, num: int) -> np.ndarray:
    if chips is None:
        return np.zeros(num, dtype=bool)
    middle = chips.chip_size // 2
    return ~np.isfinite(chips.pixels_NCHW[:, :, middle, middle]).all(axis=1)


def _with_rasters(points: Points, needs: Needs, missing: Sequence[str], rasters: Sequence[str | os.PathLike]) -> Points:
    """Chips around the points, whose middle also gives the covariates that are missing."""
    plots = points.plots
    bands = () if plots.chips is not None else needs.bands
    size = needs.chip_size if bands else 1
    with open_rasters([Path(raster) for raster in rasters]) as opened:
        require_called(opened, missing)
        stack = opened.with_bands((*bands, *missing))
        chips, kept, _ = cut_chips(stack, plots, size)
        is_inside_N = stack.grid.is_inside(*stack.grid.pixels(plots.xy_N2, plots.crs))
    where = {True: "falls on a pixel without data", False: "lies outside the rasters"}
    lost = np.setdiff1d(np.arange(len(plots)), kept)
    reasons = points.reasons | {int(points.rows_N[row]): where[bool(is_inside_N[row])] for row in lost}
    num = len(bands)
    found_ND = chips.pixels_NCHW[:, num:, size // 2, size // 2]
    seen = Chips(chips.pixels_NCHW[:, :num], chips.lonlat_N2HW, tuple(bands)) if bands else None
    inner = plots.subset(kept)
    placed_plots = replace(
        inner,
        chips=inner.chips or seen,
        covariates_ND=np.concatenate([inner.covariates_ND, found_ND], axis=1),
        covariate_names=(*inner.covariate_names, *missing),
        notes=(*inner.notes, *stack.notes),
    )
    return replace(points, plots=placed_plots, rows_N=points.rows_N[kept], reasons=reasons)


def _ordered(points: Points, needs: Needs) -> Points:
    """Covariates in the order in which the model knows them."""
    plots = points.plots
    order = [plots.covariate_names.index(name) for name in needs.covariates]
    ordered = replace(plots, covariates_ND=plots.covariates_ND[:, order], covariate_names=needs.covariates)
    return replace(points, plots=ordered)
