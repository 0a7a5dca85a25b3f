"""A few colours that stand for all: k-means on pixels, so that a pixel becomes one number (Chen 2020, section 3.1).

Shape letters: P pixels, C channels, T colours.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mirada.errors import MiradaError

MAX_PIXELS = 2**16  # enough for 512 colours: more change the palette by less than the noise of an image
MAX_ROUNDS = 30


def pixels_of(images_BCHW: Tensor, seed: int = 0) -> Tensor:
    """(P, C) pixels drawn from all images, at most MAX_PIXELS."""
    pixels_PC = images_BCHW.transpose(0, 1).flatten(1).T
    if len(pixels_PC) > MAX_PIXELS:
        generator = torch.Generator().manual_seed(seed)
        pixels_PC = pixels_PC[torch.randperm(len(pixels_PC), generator=generator)[:MAX_PIXELS]]
    return pixels_PC


def learn_palette(pixels_PC: Tensor, num_colours: int = 512, seed: int = 0) -> Tensor:
    """(T, C) colours by k-means, from dark to light; T is smaller where there are fewer different pixels."""
    if num_colours < 1:
        raise MiradaError(f"a palette of {num_colours} colours: give at least one")
    distinct, counts = np.unique(pixels_PC.double().cpu().numpy(), axis=0, return_counts=True)
    if len(distinct) > num_colours:
        from sklearn.cluster import KMeans

        means = KMeans(num_colours, n_init=1, max_iter=MAX_ROUNDS, random_state=seed)
        distinct = means.fit(distinct, sample_weight=counts).cluster_centers_
    order = np.lexsort((*distinct.T, distinct.sum(1)))
    return torch.from_numpy(distinct[order]).to(pixels_PC.dtype)
