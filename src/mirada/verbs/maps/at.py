"""What a map says at a place, and what the model looked at there: the pixels around it, and the plots it knows.

    around_HW = mean over members of A_L ⋯ A_1      of the middle pixel on the pixels of its chip, heads averaged
    α_P       = mean over members of the weights on known plot P

A map outlives the rasters, the plots and the weights that it was made from: what is no longer there is left out, with a
word for it. Shape letters: L layers, H and W pixels of a chip, P known plots, M members.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from mirada.core import record
from mirada.core.record import Maps
from mirada.data.geo.crs import LONLAT
from mirada.data.geo.rasters import Rasters, open_rasters
from mirada.data.geo.sphere import distance_km
from mirada.errors import MiradaError
from mirada.report.contents import read_contents
from mirada.report.plots_attention import plots_seen
from mirada.report.plots_opened import open_run_on_plots
from mirada.systems import Spatioformer
from mirada.verbs.maps.chip_attention import around, received
from mirada.verbs.maps.run_predictor import identity_of
from mirada.verbs.maps.tags import MapTags
from mirada.verbs.maps.trained import TrainedPlots
from mirada.verbs.maps.web_map import WebMap

NUM_PLOTS = 12
Missing = Literal["data", "tags", "model", "rasters", "plots"]


@dataclass(frozen=True, eq=False)
class Chip:
    """Shares of attention on the pixels around a place, NaN where there is no data."""

    attention_HW: np.ndarray
    kind: Literal["around", "received"]  # from the place itself, or from all pixels (models without a middle)


@dataclass(frozen=True)
class SeenPlot:
    name: str
    longitude: float
    latitude: float
    value: float  # measured there
    weight: float
    km: float


@dataclass(frozen=True, eq=False)
class MapAt:
    longitude: float  # of the middle of the pixel, where there is one
    latitude: float
    values: dict[str, float | None]
    coverage: float  # what the interval from low to high is to hold
    chip: Chip | None = None
    plots: tuple[SeenPlot, ...] = ()  # the strongest first
    num_plots: int = 0  # that the model looks at
    missing: Missing | None = None  # why there is no chip or no plots, if there could be


def values_at(opened: WebMap, longitude: float, latitude: float) -> tuple[tuple[int, int] | None, dict]:
    """Row and column of the pixel that holds a place, and what all bands say there; None beside the map."""
    place = np.array([[(longitude + 180) % 360 - 180, latitude]])
    rows, cols = opened.grid.pixels(place, LONLAT)
    if not opened.grid.is_inside(rows, cols)[0]:
        return None, dict.fromkeys(opened.bands)
    row, col = int(rows[0]), int(cols[0])
    with opened.open() as dataset:
        window = ((row, row + 1), (col, col + 1))
        found = {band: float(opened.read(dataset, band, window=window)[0, 0]) for band in opened.bands}
    return (row, col), {band: value if np.isfinite(value) else None for band, value in found.items()}


def map_at(trained: TrainedPlots, opened: WebMap, longitude: float, latitude: float) -> MapAt:
    """What is there and why. `trained` is the run that made the map."""
    pixel, values = values_at(opened, longitude, latitude)
    if pixel is None or values["prediction"] is None:
        return MapAt(longitude, latitude, values, trained.certainty.coverage, missing="data")
    lon, lat = (float(degrees) for degrees in opened.grid.lonlat(np.array(pixel[0]), np.array(pixel[1])))
    found = MapAt(lon, lat, values, trained.certainty.coverage)
    try:
        layers_1LHW = _layers(trained, opened, pixel)
    except _NotThere as reason:
        return replace(found, missing=reason.what)
    return _looked(trained, layers_1LHW, found)


class _NotThere(Exception):
    def __init__(self, what: Missing) -> None:
        self.what: Missing = what


def _layers(trained: TrainedPlots, opened: WebMap, pixel: tuple[int, int]) -> Tensor:
    """(1, L, H, W) as the model saw them, before they are scaled."""
    tags = opened.tags
    if tags is None:
        raise _NotThere("tags")
    if identity_of(trained.folder, tags.samples, tags.constants) != tags.model:
        raise _NotThere("model")
    try:
        rasters = _rasters(trained, opened, tags)
    except MiradaError:
        raise _NotThere("rasters") from None
    reach = trained.needs.chip_size // 2
    rows, cols = ((at - reach, at + reach + 1) for at in pixel)
    with rasters:
        given = dict(zip(rasters.band_names, rasters.read(rows, cols), strict=True))
    side = 2 * reach + 1
    for name, value in tags.constants.items():
        given[name] = np.full((side, side), value, np.float32)
    names = (*trained.needs.bands, *trained.needs.covariates)
    layers_LHW = [*(given[name] for name in names), *rasters.lonlat(rows, cols).astype(np.float32)]
    return torch.from_numpy(np.stack(layers_LHW))[None]


def _rasters(trained: TrainedPlots, opened: WebMap, tags: MapTags) -> Rasters:
    """The rasters of a map, if they still lie on its grid."""
    paths = [path for path in tags.raster_paths(opened.path) if path.is_file()]
    if len(paths) != len(tags.rasters):
        raise MiradaError("the rasters of the map are no longer there.")
    needed = [name for name in (*trained.needs.bands, *trained.needs.covariates) if name not in tags.constants]
    rasters = open_rasters(paths).with_bands(needed)
    if not rasters.grid.is_same(opened.grid):
        raise MiradaError("the rasters of the map have another grid now.")
    return rasters


@torch.inference_mode()
def _looked(trained: TrainedPlots, layers_1LHW: Tensor, found: MapAt) -> MapAt:
    model = trained.model
    with record(model) as maps:
        model(trained.scale.apply(layers_1LHW).to(trained.device))
    with_chip = replace(found, chip=_chip(trained, layers_1LHW, maps))
    if not isinstance(model, Spatioformer):
        return with_chip
    try:
        known = known_plots(trained.folder.path)
    except MiradaError:
        return replace(with_chip, missing="plots")
    weight_P = maps["attend"].mean((0, 1, 2)).cpu().numpy()
    return replace(with_chip, plots=_strongest(weight_P, known, found), num_plots=len(weight_P))


def _chip(trained: TrainedPlots, layers_1LHW: Tensor, maps: Maps) -> Chip | None:
    """None of a model that sees no rasters, or only the pixel itself."""
    num_bands, (height, width) = len(trained.needs.bands), layers_1LHW.shape[-2:]
    if not num_bands or height == 1:
        return None
    has_data_HW = layers_1LHW[0, :num_bands].isfinite().all(0).numpy()

    def known(weights_HW: Tensor) -> np.ndarray:
        return np.where(has_data_HW, weights_HW.cpu().numpy(), np.nan).astype(np.float32)

    if isinstance(trained.model, Spatioformer):
        return Chip(known(around(trained.model, maps)), "around")
    return Chip(known(received(maps, (height, width))), "received")


def _strongest(weight_P: np.ndarray, known: KnownPlots, at: MapAt) -> tuple[SeenPlot, ...]:
    order = np.argsort(-weight_P, kind="stable")[:NUM_PLOTS]
    km = distance_km(known.lonlat_P2[order], np.array([at.longitude, at.latitude]))
    return tuple(
        SeenPlot(
            name=known.names[p],
            longitude=float(known.lonlat_P2[p, 0]),
            latitude=float(known.lonlat_P2[p, 1]),
            value=float(known.values_P[p]),
            weight=float(weight_P[p]),
            km=float(away),
        )
        for p, away in zip(order, km, strict=True)
    )


@dataclass(frozen=True, eq=False)
class KnownPlots:
    """The plots that the model of a run keeps, in its order."""

    lonlat_P2: np.ndarray
    values_P: np.ndarray  # measured
    names: tuple[str, ...]


def known_plots(run: Path) -> KnownPlots:
    """Read from the source of the run, once. Raises a MiradaError if that is no longer what it was trained on."""
    return _known_plots(run, (run / "data.json").stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _known_plots(run: Path, version: int) -> KnownPlots:
    contents = read_contents(run)
    opened = open_run_on_plots(contents)
    seen = plots_seen(contents, opened)
    names = tuple(opened.plots.name(row) for row in seen)
    return KnownPlots(opened.plots.lonlat_N2[seen], opened.plots.targets_N[seen], names)
