"""What the map engine asks of a model. Shape letters: L layers, T outputs, H and W with halo, h and w without."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mirada.data.geo.scale import LayerScale


class Predictor(Protocol):
    """A trained model that maps.

    Pickled, it must be small: the path of its run and what was asked for, from which it is built again; workers of a
    cluster do so once each. `predict` must be a pure function, for each pixel of its own surroundings: an uncertainty
    that is drawn at random needs draws that do not depend on the tile.
    """

    identity: str  # names the model and its weights: only the same one goes on with a map that was stopped
    band_names: tuple[str, ...]  # of the rasters, in the order in which they come
    halo: int  # pixels around each pixel that it looks at: half of a chip
    outputs: tuple[str, ...]  # names of the bands of the map, such as prediction, low, high, spread, applicability
    scale: LayerScale | None  # of these bands, to refuse rasters in another unit; None: not checked

    def predict(self, layers_LHW: np.ndarray) -> np.ndarray:
        """float32 (T, h, w) from the bands (NaN: no data), longitude and latitude; H = h + 2 halo, W alike.

        h and w are multiples of tiles.STEP. What is predicted where a band has no data does not matter.
        """
        ...
