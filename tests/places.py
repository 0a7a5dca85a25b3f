"""Small made-up plots."""

from pathlib import Path

import numpy as np

from mirada.data.geo.plots import Plots


def plots_at(lonlat, **changes) -> Plots:
    """Plots at these places (degrees), with two covariates and targets 0, 1, 2…"""
    lonlat = np.asarray(lonlat, dtype=np.float64)
    num = len(lonlat)
    covariates = np.random.default_rng(num).normal(size=(num, 2)).astype(np.float32)
    given = {"xy_N2": lonlat, "crs": "EPSG:4326", "lonlat_N2": lonlat, "covariates_ND": covariates}
    given |= {"targets_N": np.arange(num, dtype=np.float32), "covariate_names": ("rain", "elev")}
    return Plots(**{"source": "plots.csv", "kind": "csv", "target_name": "richness", **given, **changes})


def scattered(num: int, seed: int = 0, west: float = 10, south: float = 40, width: float = 20, height: float = 10):
    """(num, 2) places in a rectangle of degrees, which may reach over the antimeridian."""
    places = np.random.default_rng(seed).uniform(size=(num, 2)) * (width, height) + (west, south)
    return np.stack([(places[:, 0] + 180) % 360 - 180, places[:, 1]], axis=1)


def write_csv(path: Path, columns: dict, delimiter: str = ",") -> Path:
    rows = [delimiter.join(columns), *(delimiter.join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
