"""`mirada map`: what a model of plots says of every pixel of rasters, as a Cloud-Optimised GeoTIFF with previews."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mirada.data.geo.rasters import open_rasters
from mirada.train.folder import RunFolder
from mirada.verbs.maps.map_run import MapProgress, MapResult, map_rasters
from mirada.verbs.maps.run_predictor import RunPredictor
from mirada.verbs.maps.tags import seen_from
from mirada.verbs.maps.tiles import DEFAULT_TILE


def map_run(
    run: str | Path | RunFolder,
    rasters: str | os.PathLike | Sequence[str | os.PathLike],
    out: str | Path,
    *,
    tile: int = DEFAULT_TILE,
    workers: int | None = None,
    scheduler: str | None = None,
    samples: int = 0,
    constants: Mapping[str, float] | None = None,
    progress: Callable[[MapProgress], None] | None = None,
) -> MapResult:
    """Predict every pixel that has all bands into the GeoTIFF `out`; beside it lie a .png and an .html of it.

    rasters:   GeoTIFFs with the bands that the run was trained on, and a band for each of its covariates.
    tile:      side in pixels of the squares in which it goes; the map does not depend on it.
    workers:   threads (None: one per core); with `scheduler`, the address of a Dask cluster, its workers compute.
    samples:   draws of Monte-Carlo dropout for the band `spread`; 0: the spread of the model's members.
    constants: covariates that have one value everywhere, such as {"year": 2020}, and need no band.

    Its bands are prediction, low and high (the interval of the run's validation), spread, and applicability: the
    dissimilarity to the training plots, in thresholds, where up to 1 is inside the area of applicability. A map that
    was stopped goes on where it was if the same call is made again.
    """
    predictor = RunPredictor(run, samples, constants)
    paths = [rasters] if isinstance(rasters, str | os.PathLike) else rasters
    with open_rasters([Path(path) for path in paths]) as opened:
        predictor.require_bands(opened)
        made = map_rasters(
            predictor,
            opened,
            out,
            tile=tile,
            scheduler=scheduler,
            workers=workers,
            progress=progress,
            tags=predictor.tags(seen_from(Path(out), opened.paths)).written(),
        )
    return dataclasses.replace(made, notes=(*made.notes, *predictor.notes))


map = map_run  # what the package calls it
