"""A map from a predictor and rasters: tiles in, one Cloud-Optimised GeoTIFF and its previews out; resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mirada.data.geo.rasters import Rasters
from mirada.errors import MiradaError
from mirada.verbs.maps.predict_tile import Job
from mirada.verbs.maps.predictor import Predictor
from mirada.verbs.maps.preview import write_png
from mirada.verbs.maps.preview_page import write_page
from mirada.verbs.maps.scale_check import require_same_scale
from mirada.verbs.maps.schedule import predict_tiles
from mirada.verbs.maps.tiles import DEFAULT_TILE, Tile, tiles_of, whole_steps
from mirada.verbs.maps.write import TileStore

SUFFIXES = (".tif", ".tiff")
CACHE = 256 * 2**20  # bytes


@dataclass(frozen=True)
class MapProgress:
    """After each tile; tiles that the files do not even store are done from the start."""

    done: int
    total: int
    seconds: float  # since this command began to predict
    seconds_left: float | None  # None: not known yet


@dataclass(frozen=True)
class MapResult:
    path: Path
    png: Path
    page: Path
    size: tuple[int, int]
    outputs: tuple[str, ...]
    num_tiles: int
    num_empty: int  # tiles without a single pixel with data
    num_kept: int  # tiles that an earlier command had finished
    seconds: float  # of predicting
    cog_seconds: float  # of writing the Cloud-Optimised GeoTIFF
    notes: tuple[str, ...]


def map_rasters(
    predictor: Predictor,
    rasters: Rasters,
    out: str | Path,
    *,
    tile: int = DEFAULT_TILE,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Callable[[MapProgress], None] | None = None,
    tags: Mapping[str, str] | None = None,
) -> MapResult:
    """Predict every pixel of `rasters` that has all bands into the GeoTIFF `out`; beside it a .png and an .html.

    tile: side of the squares in which it goes, rounded up to a multiple of tiles.STEP; the map does not depend on it.
    scheduler, workers: see schedule.predict_tiles. tags: what the file is to remember (see tags.py).
    A call that was stopped goes on where it was if it is made again.
    """
    out, tile = Path(out), whole_steps(tile)
    _require_free_name(out, rasters)
    rasters = rasters.with_bands(predictor.band_names)
    tiles = tiles_of(rasters.size, tile)
    facts = _facts(predictor, rasters, tile)
    if predictor.scale is not None:
        require_same_scale(rasters, tiles, predictor.scale)
    with small_cache(), rasters, TileStore(out, rasters.grid, predictor.outputs, tile, facts, tags) as store:
        num_kept = len(store.done)
        waiting = _stored(rasters, [one for one in tiles if one.number not in store.done], store)
        begin = time.monotonic()
        for n, (one, bands_Thw) in enumerate(
            predict_tiles(Job(predictor, rasters), waiting, scheduler=scheduler, workers=workers), start=1
        ):
            store.write(one, bands_Thw)
            if progress is not None:
                seconds = time.monotonic() - begin
                progress(MapProgress(len(store.done), len(tiles), seconds, seconds / n * (len(waiting) - n)))
        predicted = time.monotonic()
        store.finish()
        written = time.monotonic()
    empty = ("No pixel has all bands: the map is empty.",) if len(store.empty) == len(tiles) else ()
    return MapResult(
        path=out,
        png=write_png(out),
        page=write_page(out),
        size=rasters.size,
        outputs=tuple(predictor.outputs),
        num_tiles=len(tiles),
        num_empty=len(store.empty),
        num_kept=num_kept,
        seconds=predicted - begin,
        cog_seconds=written - predicted,
        notes=(*rasters.notes, *empty),
    )


def small_cache() -> AbstractContextManager:
    """GDAL keeps blocks that it has read, by default in a twentieth of all memory."""
    import rasterio

    return rasterio.Env(GDAL_CACHEMAX=CACHE)


def _stored(rasters: Rasters, tiles: Sequence[Tile], store: TileStore) -> list[Tile]:
    """The tiles of which the files store something; the others are done."""
    waiting = []
    for tile in tiles:
        if rasters.is_stored(tile.rows, tile.cols):
            waiting.append(tile)
        else:
            store.write(tile, None)
    return waiting


def _facts(predictor: Predictor, rasters: Rasters, tile: int) -> dict:
    """What must be the same for a map to be gone on with."""
    files = [(str(Path(path).resolve()), Path(path).stat()) for path in rasters.paths]
    return {
        "model": predictor.identity,
        "outputs": predictor.outputs,
        "rasters": [(path, status.st_size, status.st_mtime_ns) for path, status in files],
        "bands": [(Path(band.path).name, band.index) for band in rasters.bands],
        "tile": tile,
    }


def _require_free_name(out: Path, rasters: Rasters) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise MiradaError(f"{out}: a map is a GeoTIFF; give a name that ends in .tif.")
    if out.resolve() in {Path(path).resolve() for path in rasters.paths}:
        raise MiradaError(f"{out} is one of the rasters that are mapped; give the map another name.")
