"""A model run over a tile in patches of one fixed size. Shape letters: L layers, T outputs, H and W with halo.

    y_T(i, j) = dense(x_L(i − halo … i + halo, j − halo … j + halo))

The order in which a matrix product adds depends on its size. With one size of patch, cut at multiples of STEP and
always run on one thread, each pixel is computed by the same additions whatever the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from mirada.verbs.maps.tiles import STEP


def run_dense(dense: Callable[[Tensor], Tensor], layers_LHW: np.ndarray, *, num_bands: int, halo: int) -> np.ndarray:
    """float32 (T, H − 2 halo, W − 2 halo); NaN in patches where no pixel has all of the first `num_bands` layers."""
    height, width = (side - 2 * halo for side in layers_LHW.shape[1:])
    assert height % STEP == width % STEP == 0
    has_all = np.isfinite(layers_LHW[:num_bands]).all(axis=0)
    made: np.ndarray | None = None
    with torch.inference_mode(), one_thread():
        for row in range(0, height, STEP):
            for col in range(0, width, STEP):
                if not has_all[row + halo : row + halo + STEP, col + halo : col + halo + STEP].any():
                    continue
                patch_LHW = layers_LHW[:, row : row + STEP + 2 * halo, col : col + STEP + 2 * halo]
                patch_THW = dense(torch.from_numpy(np.ascontiguousarray(patch_LHW))[None])[0]
                if made is None:
                    made = np.full((len(patch_THW), height, width), np.nan, np.float32)
                made[:, row : row + STEP, col : col + STEP] = patch_THW.float().cpu().numpy()
    assert made is not None, "a tile without data is not predicted"
    return made


@contextmanager
def one_thread() -> Iterator[None]:
    """In this thread of Python: tiles are computed side by side, and sums do not depend on how many cores there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
