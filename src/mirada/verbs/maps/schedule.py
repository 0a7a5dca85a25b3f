"""The same tiles in the same order by one process, by threads of Dask, or by a Dask cluster.

Never more tiles are under way than twice the threads that work on them, so memory does not grow with the map. A tile
whose worker is lost is computed again by another, which Dask sees to.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from mirada.data.geo.extra import require_maps
from mirada.errors import MiradaError
from mirada.verbs.maps.predict_tile import Job
from mirada.verbs.maps.tiles import Tile

Made = tuple[Tile, np.ndarray | None]
CONNECTING = "20s"


def predict_tiles(job: Job, tiles: Sequence[Tile], *, scheduler: str | None, workers: int | None) -> Iterator[Made]:
    """Each tile with its bands, in order. `scheduler` is the address of a cluster; without one `workers` threads of
    this machine (None: one per core) compute, and with one worker this process alone.
    """
    workers = workers or os.cpu_count() or 1
    if scheduler is None and (workers == 1 or len(tiles) < 2):
        yield from ((tile, job.predict(tile)) for tile in tiles)
        return
    with _client(scheduler, workers) as client:
        yield from _in_order(client, job, tiles)


def _in_order(client: Any, job: Job, tiles: Sequence[Tile]) -> Iterator[Made]:
    from distributed import KilledWorker

    packed, waiting = pickle.dumps(job), iter(tiles)
    at_once = 2 * max(2, sum(client.nthreads().values()))
    under_way: deque[tuple[Tile, Any]] = deque()
    while True:
        for tile in islice(waiting, at_once - len(under_way)):
            under_way.append((tile, client.submit(_predict, packed, tile, pure=False)))
        if not under_way:
            return
        tile, future = under_way.popleft()
        try:
            yield tile, future.result()
        except KilledWorker as error:
            raise MiradaError(
                f"the tile of rows {tile.rows[0]} to {tile.rows[1]}, columns {tile.cols[0]} to {tile.cols[1]} ended "
                "several workers; give them more memory, and the same command again to go on."
            ) from error


def _predict(packed: bytes, tile: Tile) -> np.ndarray | None:
    return _unpacked(packed).predict(tile)


@lru_cache(maxsize=2)
def _unpacked(packed: bytes) -> Job:
    """Model and rasters, once per worker: they are not sent but opened again from their paths."""
    return pickle.loads(packed)


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    require_maps("mapping with several workers")
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=CONNECTING, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MiradaError(
                f"scheduler {scheduler} does not answer ({error}); give the address that `dask scheduler` printed, "
                "such as tcp://10.0.0.7:8786."
            ) from None
        with client:
            yield client
        return
    threads = LocalCluster(
        n_workers=1, threads_per_worker=workers, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0
    )
    with threads, Client(threads, set_as_default=False) as client:
        yield client
