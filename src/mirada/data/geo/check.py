"""Look at plots before training: how many, where, how clustered, what was measured, what is missing or odd."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mirada.data.geo.blocks import auto_block_km, blocks_of
from mirada.data.geo.plots import Plots
from mirada.data.geo.sphere import equal_area_km, neighbour_km
from mirada.data.geo.suspicions import problems_of_plots, warnings_of_plots
from mirada.data.table import SPLIT_NAMES
from mirada.errors import MiradaError


@dataclass(frozen=True)
class Values:
    """What the numbers of a column or band are like."""

    least: float
    median: float
    mean: float
    most: float
    std: float
    missing: float  # share
    zero: float  # share of those that are not missing


@dataclass(frozen=True)
class PlotsInspection:
    """What a look at the plots found."""

    source: str
    kind: str
    crs: str
    num_rows: int
    split_counts: dict[str, int]  # 'all' when no split is given
    extent: tuple[float, float, float, float]  # west, south, east, north in degrees; west > east over the antimeridian
    area_km2: float  # of the convex hull
    target_name: str
    target: Values
    covariates: dict[str, Values]
    bands: dict[str, Values]
    chip_size: int
    incomplete_chips: float  # share of chips with a pixel without data
    num_repeated: int  # rows that lie exactly where another one does
    neighbour_km: tuple[float, float]  # distance to the nearest other plot: median, and what 95 % stay below
    spacing: float | None  # Clark and Evans' ratio, see `spacing_of`
    block_km: float  # the side of blocks that is chosen for these plots
    num_blocks: int
    problems: tuple[str, ...]  # these stop training
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict:
        """Plain dictionaries and lists, for JSON."""
        return asdict(self)


def inspect_plots(plots: Plots) -> PlotsInspection:
    nearest_N = neighbour_km(plots.lonlat_N2)
    spacing, area = spacing_of(plots.lonlat_N2)
    side_km = auto_block_km(plots)
    num_blocks = len(np.unique(blocks_of(plots, side_km)))
    covariates = {name: values_of(plots.covariates_ND[:, i]) for i, name in enumerate(plots.covariate_names)}
    chips = plots.chips
    bands = {} if chips is None else {n: values_of(chips.pixels_NCHW[:, i]) for i, n in enumerate(chips.band_names)}
    is_complete = [True] if chips is None else np.isfinite(chips.pixels_NCHW).all(axis=(1, 2, 3))
    return PlotsInspection(
        source=plots.source,
        kind=plots.kind,
        crs=plots.crs,
        num_rows=len(plots),
        split_counts=_split_counts(plots),
        extent=extent_of(plots.lonlat_N2),
        area_km2=area,
        target_name=plots.target_name,
        target=values_of(plots.targets_N),
        covariates=covariates,
        bands=bands,
        chip_size=1 if chips is None else chips.chip_size,
        incomplete_chips=float(1 - np.mean(is_complete)),
        num_repeated=len(plots) - len(np.unique(plots.xy_N2, axis=0)),
        neighbour_km=(float(np.median(nearest_N)), float(np.quantile(nearest_N, 0.95))),
        spacing=spacing,
        block_km=side_km,
        num_blocks=num_blocks,
        problems=tuple(problems_of_plots(plots)),
        warnings=tuple(warnings_of_plots(plots, nearest_N, spacing, num_blocks)),
        notes=plots.notes,
    )


def require_trainable_plots(plots: Plots) -> None:
    """Raise with the first problem, if there is one."""
    for problem in problems_of_plots(plots):
        raise MiradaError(f"{plots.source}: {problem}")


def values_of(values: np.ndarray) -> Values:
    known = values[np.isfinite(values)].astype(np.float64)
    missing = 1 - known.size / values.size
    if not known.size:
        return Values(np.nan, np.nan, np.nan, np.nan, np.nan, missing, 0.0)
    least, median, most = np.quantile(known, (0, 0.5, 1)).tolist()
    return Values(least, median, float(known.mean()), most, float(known.std()), missing, float((known == 0).mean()))


def spacing_of(lonlat_N2: np.ndarray) -> tuple[float | None, float]:
    """R = mean distance to the nearest neighbour / (½ √(A / N)), and A, the area in km² of the convex hull.

    Places drawn evenly at random have R = 1, clustered ones less, a regular grid up to 2.15 (Clark and Evans, Ecology
    35(4), 1954). None for places on a line.
    """
    places = np.unique(lonlat_N2, axis=0)
    try:
        area = float(ConvexHull(equal_area_km(places)).volume)  # in two dimensions the volume is the area
    except (QhullError, ValueError):
        return None, 0.0
    return float(neighbour_km(places).mean() / (0.5 * np.sqrt(area / len(places)))), area


def extent_of(lonlat_N2: np.ndarray) -> tuple[float, float, float, float]:
    """West, south, east, north: the shortest stretch that holds all longitudes, also across the antimeridian."""
    lon = np.unique(lonlat_N2[:, 0])
    gaps = np.diff(lon, append=lon[0] + 360)
    widest = int(gaps.argmax())
    south, north = lonlat_N2[:, 1].min(), lonlat_N2[:, 1].max()
    return float(lon[(widest + 1) % len(lon)]), float(south), float(lon[widest]), float(north)


def _split_counts(plots: Plots) -> dict[str, int]:
    if plots.splits is None:
        return {"all": len(plots)}
    return {name: int((plots.splits == name).sum()) for name in SPLIT_NAMES}
