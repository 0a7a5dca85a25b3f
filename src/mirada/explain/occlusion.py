"""Occlusion (Zeiler and Fergus 2014): how far the score falls when one cell of the image is covered.

    map_k = y_c(x) − y_c(x with cell k from the baseline)

Shape letters: B batch, C channels, R rows and C columns of cells, P = R·K.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mirada.explain.cells import Cells

MOST_PIXELS = 2**20  # that are looked at together
MOST_IMAGES = 64


@torch.no_grad()
def occlusion(score: Callable[[Tensor, Tensor], Tensor], images_BCHW: Tensor, baseline: Tensor, cells: Cells) -> Tensor:
    """(B, R, K). `score(images, index)` gives one number per image; `index` says which of the batch each was."""
    own_B = torch.arange(len(images_BCHW), device=images_BCHW.device)
    whole_B = score(images_BCHW, own_B)
    cell_HW = cells.of_pixels(images_BCHW.device)
    number_BP = torch.arange(cells.count, device=images_BCHW.device).expand(len(images_BCHW), -1)
    at_once = max(1, min(MOST_IMAGES, MOST_PIXELS // cell_HW.numel()))
    left = []
    for index, number in zip(
        own_B[:, None].expand_as(number_BP).flatten().split(at_once),
        number_BP.flatten().split(at_once),
        strict=True,
    ):
        covered = (cell_HW == number[:, None, None])[:, None]
        left.append(score(torch.where(covered, baseline[index], images_BCHW[index]), index))
    return (whole_B[:, None] - torch.cat(left).view(len(images_BCHW), -1)).unflatten(1, (cells.rows, cells.columns))
