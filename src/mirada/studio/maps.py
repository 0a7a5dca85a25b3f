"""The addresses of the maps of a run: which there are, their tiles, and what they say at a place."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel

from mirada.serve.refusals import Refused
from mirada.studio.answers import Floats
from mirada.studio.state import REFUSALS, Studio
from mirada.train.folder import RunFolder
from mirada.verbs.maps.at import MapAt, Missing, map_at
from mirada.verbs.maps.of_run import NoMap, map_of, maps_of
from mirada.verbs.maps.ramp import stops
from mirada.verbs.maps.tiles_web import MAX_ZOOM, tile_png
from mirada.verbs.maps.trained import plots_run
from mirada.verbs.maps.web_map import WebMap, version_of

MOST_DEGREES = 540.0  # a map may be dragged beyond the antimeridian
Longitude = Annotated[float, Query(ge=-MOST_DEGREES, le=MOST_DEGREES, allow_inf_nan=False)]
Latitude = Annotated[float, Query(ge=-90, le=90, allow_inf_nan=False)]
TILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/png": {}}},
    304: {"description": "The tile that you have is still the right one."},
}


class MapBand(BaseModel):
    name: str
    low: float
    high: float
    colours: list[str]


class MapFile(BaseModel):
    file: str
    target: str
    bounds: tuple[tuple[float, float], tuple[float, float]]
    size: tuple[int, int]
    bands: list[MapBand]


class MapChip(BaseModel):
    size: tuple[int, int]
    attention: Floats
    kind: Literal["around", "received"]


class MapPlot(BaseModel):
    name: str
    longitude: float
    latitude: float
    value: float
    weight: float
    km: float


class MapAnswer(BaseModel):
    longitude: float
    latitude: float
    values: dict[str, float | None]
    coverage: float
    chip: MapChip | None
    plots: list[MapPlot]
    num_plots: int
    missing: Missing | None


def routes(state: Studio) -> APIRouter:
    router = APIRouter(tags=["maps"], responses=REFUSALS)

    def opened(run: RunFolder, file: str) -> WebMap:
        try:
            return map_of(run.path, state.folder, file)
        except NoMap as error:
            raise Refused(404, str(error)) from None

    @router.get("/runs/{name}/maps")
    def maps(name: str) -> list[MapFile]:
        """The maps of a run: in its folder, in its `maps` folder, and beside it where they name the run."""
        run = state.run(name)
        target = str(run.read_data().get("target_name", ""))
        return [_described(file, one, target) for file, one in maps_of(run.path, state.folder).items()]

    @router.get("/runs/{name}/maps/{file:path}/tiles/{band}/{z}/{x}/{y}.png", response_class=Response, responses=TILE)
    def tile(
        name: str,
        file: str,
        band: str,
        z: Annotated[int, Path(ge=0, le=MAX_ZOOM)],
        x: Annotated[int, Path(ge=0, lt=2**MAX_ZOOM)],
        y: Annotated[int, Path(ge=0, lt=2**MAX_ZOOM)],
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        """A tile of 256 pixels in Web Mercator, transparent where the map has no data."""
        found = opened(state.run(name), file)
        if band not in found.bands or not (x < 2**z and y < 2**z):
            raise Refused(404, f"There is no tile {band[:80]!r} {z}/{x}/{y} of {file[:80]!r}.")
        tag = '"{:x}-{:x}"'.format(*version_of(found.path))
        headers = {"ETag": tag, "Cache-Control": "no-cache"}  # the same name may soon hold another map
        if if_none_match == tag:
            return Response(status_code=304, headers=headers)
        return Response(tile_png(found.path, band, z, x, y), media_type="image/png", headers=headers)

    @router.get("/runs/{name}/maps/{file:path}/at")
    def at(name: str, file: str, longitude: Longitude, latitude: Latitude) -> MapAnswer:
        """What the map says at a place, and what the model looked at there."""
        run = state.run(name)
        found = opened(run, file)
        with state.one_at_a_time(run):
            return _answer(map_at(plots_run(state.models.get(run.path)), found, longitude, latitude))

    return router


def _described(file: str, found: WebMap, target: str) -> MapFile:
    west, south, east, north = found.bounds
    return MapFile(
        file=file,
        target=target,
        bounds=((south, west), (north, east)),
        size=found.grid.size,
        bands=[
            MapBand(name=name, low=low, high=high, colours=stops(name)) for name, (low, high) in found.limits.items()
        ],
    )


def _answer(at: MapAt) -> MapAnswer:
    chip = None
    if at.chip is not None:
        weights_HW = np.ascontiguousarray(at.chip.attention_HW, dtype="<f4")
        height, width = weights_HW.shape
        encoded = base64.b64encode(weights_HW.tobytes()).decode("ascii")
        chip = MapChip(size=(height, width), attention=encoded, kind=at.chip.kind)
    return MapAnswer(
        longitude=at.longitude,
        latitude=at.latitude,
        values=at.values,
        coverage=at.coverage,
        chip=chip,
        plots=[MapPlot(**asdict(plot)) for plot in at.plots],
        num_plots=at.num_plots,
        missing=at.missing,
    )
