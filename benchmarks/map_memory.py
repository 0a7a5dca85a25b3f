"""Memory and speed of mapping a raster that is much larger than memory should be.

    python benchmarks/map_memory.py                20,000 × 20,000 × 6, 95 % of it without data; on an idle machine
    python benchmarks/map_memory.py --system spatioformer      the same with 99.95 % of it without data
    python benchmarks/map_memory.py --side 2000    small, on any machine; not kept

The raster is made by this script: a sparse tiled GeoTIFF with discs of data. It is mapped by a convolution over 9 × 9
pixels that stands for a model, so that the engine is what is measured, or by our default with random weights. The
resident memory of the process, the libraries and GDAL's cache included, is noted ten times a second. Flat means: the
later half of predicting needs no more than the earlier. Writing the Cloud-Optimised GeoTIFF and the previews is noted
apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import jobs
from benchmarks.jobs import append_line, require_idle, told
from benchmarks.map_speed import model_named
from benchmarks.timing import machine
from mirada.data.geo.rasters import open_rasters
from mirada.verbs.maps.dense import run_dense
from mirada.verbs.maps.map_run import MapProgress, map_rasters
from mirada.verbs.maps.tiles import DEFAULT_TILE

SIDE, NUM_BANDS, BLOCK = 20_000, 6, 256
NUM_DISCS = 12
MEGABYTE = 2**20


class Convolution:
    """A predictor of five bands; pickled with its weights, which are small and seeded."""

    identity = "convolution of 9 × 9"
    band_names = tuple(f"band{n}" for n in range(1, NUM_BANDS + 1))
    outputs = ("prediction", "low", "high", "spread", "applicability")
    halo, scale = 4, None

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Conv2d(NUM_BANDS + 2, 16, 9), nn.Tanh(), nn.Conv2d(16, len(self.outputs), 1))

    def predict(self, layers_LHW: np.ndarray) -> np.ndarray:
        layers_LHW = np.concatenate([layers_LHW[:-2], layers_LHW[-2:] / 180])
        return run_dense(lambda x: self.model(x.nan_to_num()), layers_LHW, num_bands=NUM_BANDS, halo=self.halo)


class Spatioformer(Convolution):
    """Our default with 2,048 plots to look at; what its five bands mean does not matter here."""

    identity = "spatioformer"

    def __init__(self) -> None:
        self.model = model_named("spatioformer")

    def predict(self, layers_LHW: np.ndarray) -> np.ndarray:
        def dense(layers_BLHW: Tensor) -> Tensor:
            return self.model.dense(layers_BLHW.nan_to_num()).flatten(1, 2)[:, : len(self.outputs)]

        return run_dense(dense, layers_LHW, num_bands=NUM_BANDS, halo=self.halo)


# How to predict, and the share of the pixels that have data.
SYSTEMS = {"convolution": (Convolution, 0.05), "spatioformer": (Spatioformer, 0.0005)}


class Memory(threading.Thread):
    """Resident megabytes of this process over time."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, float]] = []
        self.ended = threading.Event()

    def run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self.ended.wait(0.1):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.samples.append((time.monotonic(), pages * page / MEGABYTE))

    def peak(self, begin: float, end: float) -> float:
        return max((used for at, used in self.samples if begin <= at <= end), default=float("nan"))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=SIDE, help="pixels of the square raster")
    parser.add_argument("--system", choices=SYSTEMS, default="convolution")
    parser.add_argument("--tile", type=int, default=DEFAULT_TILE)
    parser.add_argument("--workers", type=int, default=None, help="threads; one per core if not given")
    args = parser.parse_args(words)
    is_measured = args.side == SIDE
    if is_measured:
        require_idle()
    jobs.RUNS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jobs.RUNS) as scratch:
        raster = Path(scratch) / "raster.tif"
        predictor, share = SYSTEMS[args.system]
        num_valid = make_raster(raster, args.side, share)
        found = {"system": args.system} | measure(predictor(), raster, num_valid, args.tile, args.workers)
    for name, value in found.items():
        print(f"{name:28} {value}")
    if is_measured:
        append_line(jobs.RESULTS / "map_memory.jsonl", {**found, "machine": machine()})


def measure(predictor: Convolution, raster: Path, num_valid: int, tile: int, workers: int | None) -> dict:
    memory = Memory()
    before = _resident()
    memory.start()
    begin = time.monotonic()
    reported: list[float] = []

    def progress(step: MapProgress) -> None:
        reported.append(time.monotonic())

    result = map_rasters(
        predictor, open_rasters(raster), raster.with_name("map.tif"), tile=tile, workers=workers, progress=progress
    )
    memory.ended.set()
    memory.join()
    last = reported[-1]
    middle, written = last - result.seconds / 2, last + result.cog_seconds
    height, width = result.size
    return {
        "size": [height, width, NUM_BANDS],
        "tile": tile,
        "workers": workers or os.cpu_count(),
        "tiles": result.num_tiles,
        "tiles without data": result.num_empty,
        "MB before": round(before),
        "MB, earlier half": round(memory.peak(begin, middle)),
        "MB, later half": round(memory.peak(middle, last)),
        "MB, writing the COG": round(memory.peak(last, written)),
        "MB, previews": round(memory.peak(written, time.monotonic())),
        "seconds of predicting": round(result.seconds, 1),
        "seconds of the COG": round(result.cog_seconds, 1),
        "pixels with data": num_valid,
        "pixels with data per second": round(num_valid / result.seconds),
        "pixels per second": round(height * width / result.seconds),
        "MB of the map": round(result.path.stat().st_size / MEGABYTE, 1),
    }


def make_raster(path: Path, side: int, share: float) -> int:
    """Discs of smooth numbers, NaN elsewhere, blocks without data not stored; returns how many pixels have data."""
    import rasterio
    from rasterio.windows import Window

    draw = np.random.default_rng(0)
    centres = draw.uniform(0.15, 0.85, (NUM_DISCS, 2)) * side
    radius = side * (share / NUM_DISCS / np.pi) ** 0.5
    num_valid = 0
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        dtype="float32",
        count=NUM_BANDS,
        height=side,
        width=side,
        crs="EPSG:7845",
        transform=rasterio.Affine(100.0, 0.0, -1_000_000.0, 0.0, -100.0, -2_000_000.0),
        nodata=float("nan"),
        tiled=True,
        blockxsize=BLOCK,
        blockysize=BLOCK,
        interleave="pixel",
        compress="deflate",
        zlevel=1,
        bigtiff="yes",
        sparse_ok=True,
    ) as file:
        file.descriptions = Convolution.band_names
        for top in range(0, side, BLOCK):
            for left in range(0, side, BLOCK):
                rows = np.arange(top, min(top + BLOCK, side))[:, None]
                cols = np.arange(left, min(left + BLOCK, side))[None, :]
                is_valid = np.zeros((rows.size, cols.size), bool)
                for row, col in centres:
                    is_valid |= (rows - row) ** 2 + (cols - col) ** 2 < radius**2
                if is_valid.any():
                    waves = [np.sin(rows / (50 + 7 * n)) + np.cos(cols / (60 - 5 * n)) for n in range(NUM_BANDS)]
                    pixels = np.where(is_valid, np.stack(waves), np.nan).astype(np.float32)
                    file.write(pixels, window=Window(left, top, cols.size, rows.size))
                    num_valid += int(is_valid.sum())
    return num_valid


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


if __name__ == "__main__":
    told(main)
