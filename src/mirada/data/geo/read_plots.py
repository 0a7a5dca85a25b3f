"""Open whatever holds samples with a place: a table, a vector file or an archive of chips."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mirada.data.discover import has_images, is_image_name
from mirada.data.geo.assemble import assemble_plots, require_enough
from mirada.data.geo.column_names import DEGREES, MAP, pair_of
from mirada.data.geo.columns import Measured, PlotColumns, find_coordinates, read_measured
from mirada.data.geo.crs import LONLAT, canonical_crs
from mirada.data.geo.numbers import numbers_of
from mirada.data.geo.plots import Plots
from mirada.data.geo.read_chips import is_chip_archive, read_chip_archive
from mirada.data.geo.read_vector import ENDINGS, read_vector
from mirada.data.graphs import is_graph
from mirada.data.tabular import PATH_NAMES, Columns, is_table, read_columns, read_header
from mirada.data.text.column_names import plain_name
from mirada.data.text.sources import is_text
from mirada.errors import MiradaError

CHIP_SIZE = 9
# The options of open_plots, and what the data section of a configuration calls them.
SETTING_OF_OPTION = {
    "target": "label_column",
    "x": "x_column",
    "y": "y_column",
    "crs": "crs",
    "covariates": "covariates",
    "split": "split_column",
    "rasters": "rasters",
    "chip_size": "chip_size",
}


def is_plots(source: str | os.PathLike, rasters: Sequence[str | os.PathLike] = ()) -> bool:
    """Whether this is to be read as samples with a place. A table is, if it has coordinates and other numbers, and
    neither images nor texts; whoever gives rasters means a map.
    """
    path = Path(source)
    if not path.is_file():
        return False
    if path.suffix.lower() in ENDINGS:
        return True
    if path.suffix.lower() == ".npz":
        return is_chip_archive(path)
    return is_table(path) and (bool(rasters) or _is_table_of_plots(path))


def open_plots(
    source: str | os.PathLike,
    *,
    target: str | None = None,
    x: str | None = None,
    y: str | None = None,
    crs: str | None = None,
    covariates: str | Sequence[str] | None = None,
    split: str | None = None,
    rasters: str | os.PathLike | Sequence[str | os.PathLike] = (),
    chip_size: int = CHIP_SIZE,
) -> Plots:
    """Read samples with a place; what is not given is inferred, and noted.

    source:     a .csv, .tsv or .parquet table, points of a .gpkg or .geojson file, or ready chips in an .npz archive.
    target:     the column to predict.
    x, y:       the columns to the east and to the north (longitude is x).
    crs:        what x and y are in; needed unless they are called longitude and latitude, or the file says it.
    covariates: columns to predict from; by default all other numbers but identifiers. () means none.
    split:      the column that says train, val or test.
    rasters:    GeoTIFFs to cut chips of chip_size x chip_size pixels from, around the points.
    """
    name, path = os.fspath(source), Path(source)
    if not path.is_file():
        raise MiradaError(f"{name}: no such file, expected a table, .gpkg, .geojson or .npz of points.")
    covariates = [covariates] if isinstance(covariates, str) else covariates
    rasters = [rasters] if isinstance(rasters, str | os.PathLike) else rasters
    choice = PlotColumns(target, x, y, covariates, split)
    if path.suffix.lower() == ".npz":
        return _open_archive(path, name, choice, crs, rasters)
    if path.suffix.lower() in ENDINGS:
        plots = _open_vector(path, name, choice, crs)
    elif is_table(path):
        plots = _open_table(path, name, choice, crs)
    else:
        raise MiradaError(
            f"{name}: cannot read {path.suffix or 'this'}; expected .csv, .tsv, .parquet, .gpkg, .geojson or .npz."
        )
    return with_chips(plots, rasters, chip_size) if rasters else plots


def with_chips(plots: Plots, rasters: Sequence[str | os.PathLike], chip_size: int) -> Plots:
    """The plots that lie on the rasters, each with the pixels around it."""
    from mirada.data.geo.chips import cut_chips
    from mirada.data.geo.rasters import open_rasters

    with open_rasters([Path(raster) for raster in rasters]) as stack:
        chips, kept, notes = cut_chips(stack, plots, chip_size)
    placed = replace(plots.subset(kept), chips=chips, notes=(*plots.notes, *notes))
    require_enough(placed)
    return placed


def _open_table(path: Path, name: str, choice: PlotColumns, crs: str | None) -> Plots:
    columns = read_columns(path)
    crs = None if crs is None else canonical_crs(crs)
    x, y, crs = find_coordinates(columns, choice, crs, path.name)
    xy_N2 = np.stack([numbers_of(columns[column]).values_N for column in (x, y)], axis=1)
    measured = read_measured(columns, choice, (x, y), path.name)
    return assemble_plots(
        name, "parquet" if path.suffix.lower() == ".parquet" else "csv", xy_N2, crs, measured, columns=(x, y)
    )


def _open_vector(path: Path, name: str, choice: PlotColumns, crs: str | None) -> Plots:
    if choice.x or choice.y:
        raise MiradaError(f"{name}: its points have coordinates, so x and y have no meaning; leave them out.")
    columns, xy_N2, crs = read_vector(path, crs)
    measured = read_measured(columns, choice, (), path.name)
    return assemble_plots(name, ENDINGS[path.suffix.lower()], xy_N2, crs, measured)


def _open_archive(path: Path, name: str, choice: PlotColumns, crs: str | None, rasters: Sequence) -> Plots:
    for setting, value in {"x": choice.x, "y": choice.y, "crs": crs, "rasters": rasters}.items():
        if value:
            raise MiradaError(f"{name}: holds ready chips with longitude and latitude; leave {setting} out.")
    from mirada.data.geo.chips import Chips

    found = read_chip_archive(path, choice.target)
    chosen = found.covariates
    if choice.covariates is not None:
        unknown = [wanted for wanted in choice.covariates if wanted not in chosen]
        if unknown:
            raise MiradaError(f"{name}: there is no covariate {unknown[0]!r}; it has {', '.join(chosen) or 'none'}.")
        chosen = {wanted: chosen[wanted] for wanted in choice.covariates}
    middle = found.pixels_NCHW.shape[-1] // 2
    has_places_N = np.isfinite(found.lonlat_N2HW).all(axis=(1, 2, 3))
    xy_N2 = np.where(has_places_N[:, None], found.lonlat_N2HW[:, :, middle, middle], np.nan)
    chips = Chips(
        pixels_NCHW=found.pixels_NCHW,
        lonlat_N2HW=found.lonlat_N2HW.astype(np.float32),
        band_names=found.band_names,
    )
    measured = Measured(found.target_name, found.targets_N, chosen, found.splits, None, found.notes)
    plots = assemble_plots(name, "npz", xy_N2, LONLAT, measured, columns=("lon", "lat"), chips=chips)
    return _with_data_in_the_middle(plots, middle)


def _with_data_in_the_middle(plots: Plots, middle: int) -> Plots:
    """By the rule of chips that are cut from rasters: the pixel of the point itself must have all bands."""
    assert plots.chips is not None
    kept = np.flatnonzero(np.isfinite(plots.chips.pixels_NCHW[:, :, middle, middle]).all(axis=1))
    if len(kept) == len(plots):
        return plots
    note = f"{len(plots) - len(kept):,} of {len(plots):,} chips have no data in the middle and are left out."
    plots = replace(plots.subset(kept), notes=(*plots.notes, f"{Path(plots.source).name}: {note}"))
    require_enough(plots)
    return plots


def _is_table_of_plots(path: Path) -> bool:
    try:
        if pair_of(read_header(path), (*DEGREES, *MAP)) is None or is_graph(path) or is_text(path):
            return False
        columns = read_columns(path)
    except MiradaError:  # whoever reads the table says what is wrong with it
        return False
    if _is_about_images(columns, path):
        return False
    places = {name for names in (*DEGREES, *MAP) for name in pair_of(columns, (names,)) or ()}
    first = pair_of(columns, DEGREES) or pair_of(columns, MAP)
    assert first is not None
    has_places = all(numbers_of(columns[name]).is_numeric for name in first)
    return has_places and any(numbers_of(columns[name]).is_numeric for name in columns if name not in places)


def _is_about_images(columns: Columns, path: Path) -> bool:
    """A column of paths, by its cells or by its name; 'id' names a file only where there are images."""
    if any(is_image_name(cells[0]) for cells in columns.values()):
        return True
    named = {plain_name(name) for name in columns} & set(PATH_NAMES)
    return bool(named - {"id"}) or ("id" in named and has_images(path.parent))
