"""One tile of a map: read with its halo, predicted, and NaN where a band has no data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirada.data.geo.rasters import Rasters
from mirada.verbs.maps.predictor import Predictor
from mirada.verbs.maps.tiles import Tile


@dataclass(frozen=True, eq=False)
class Job:
    """All that a worker needs; small when pickled."""

    predictor: Predictor
    rasters: Rasters  # with the predictor's bands, in its order

    def predict(self, tile: Tile) -> np.ndarray | None:
        """float32 (outputs, h, w), NaN where a band has no data; None if that is everywhere, at almost no cost."""
        if not self.rasters.has_data(tile.rows, tile.cols):
            return None
        halo = self.predictor.halo
        rows, cols = tile.grown(halo)
        bands_CHW = self.rasters.read(rows, cols)
        _, height, width = bands_CHW.shape
        is_valid_hw = np.isfinite(bands_CHW[:, halo : height - halo, halo : width - halo]).all(axis=0)
        if not is_valid_hw.any():
            return None
        layers_LHW = np.concatenate([bands_CHW, self.rasters.lonlat(rows, cols).astype(np.float32)])
        made_Thw = np.asarray(self.predictor.predict(layers_LHW), dtype=np.float32)
        assert made_Thw.shape == (len(self.predictor.outputs), *is_valid_hw.shape), made_Thw.shape
        return np.where(is_valid_hw, made_Thw, np.float32("nan"))
