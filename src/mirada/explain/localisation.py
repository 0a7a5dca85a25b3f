"""Does a map point at the object? Judged by masks of the object, true inside.

    pointing    1 if the middle of the most relevant cell lies in the mask, or within `tolerance` pixels of it; where
                several cells share the highest value, the share of them that do (Zhang 2016)
    energy      Σ_mask r⁺ / Σ r⁺; 0 for a map without positive relevance (Wang 2020)
    precision   average precision Σ_n (recall_n − recall_{n−1}) precision_n of the pixels, by falling relevance
    mean IoU    ½ (IoU of the object + IoU of the rest) of the pixels above the mean of their map; intersections and
                unions are added up over all images first (Chefer 2021)

All but the first are of maps smoothed to pixels, bilinear between the middles of cells; the highest value of such a map
is in the middle of a cell. The threshold of the mean IoU is crude: a map that is the mask itself, averaged over each
patch (`oracle`), does not reach 1, and some maps can do better than it. So show it beside.

Shape letters: B batch, R rows and C columns of cells, H and W pixels, N = H·W.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.cells import Cells
from mirada.explain.references import cells_for, require_maps


@dataclass(frozen=True)
class Localisation:
    """Of each image; the last axis of the counts is the object, then the rest."""

    pointing_B: Tensor
    energy_B: Tensor
    precision_B: Tensor
    intersection_B2: Tensor
    union_B2: Tensor

    @property
    def mean_iou(self) -> float:
        return mean_iou(self.intersection_B2, self.union_B2)


def localisation(
    relevance_BRC: Tensor, mask_BHW: Tensor, *, cells: Cells | None = None, tolerance: float = 0.0
) -> Localisation:
    """All of it; see the functions below for each."""
    intersection_B2, union_B2 = overlaps(relevance_BRC, mask_BHW, cells=cells)
    return Localisation(
        pointing(relevance_BRC, mask_BHW, cells=cells, tolerance=tolerance),
        energy(relevance_BRC, mask_BHW, cells=cells),
        average_precision(relevance_BRC, mask_BHW, cells=cells),
        intersection_B2,
        union_B2,
    )


def pointing(relevance_BRC: Tensor, mask_BHW: Tensor, *, cells: Cells | None = None, tolerance: float = 0.0) -> Tensor:
    """(B,) the pointing game. The tolerance of the original is 15 pixels, on photographs."""
    if tolerance < 0:
        raise MiradaError(f"tolerance={tolerance:g} pixels: must be 0 or more")
    cells = _cells(relevance_BRC, mask_BHW, cells)
    rows_R, columns_C = (
        (torch.arange(count) * side + side // 2).clamp(max=length - 1)
        for count, side, length in zip(*_sides(cells), cells.image_size, strict=True)
    )
    reach = int(tolerance)
    hits_BRC = torch.zeros(relevance_BRC.shape, dtype=torch.bool, device=mask_BHW.device)
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            if down**2 + across**2 <= tolerance**2:
                hits_BRC |= _shifted(mask_BHW, rows_R + down, columns_C + across)
    highest_BRC = (relevance_BRC == relevance_BRC.amax((1, 2), keepdim=True)).to(mask_BHW.device)
    return (hits_BRC & highest_BRC).sum((1, 2)) / highest_BRC.sum((1, 2))


def energy(relevance_BRC: Tensor, mask_BHW: Tensor, *, cells: Cells | None = None) -> Tensor:
    """(B,) the energy-based pointing game."""
    positive_BHW = smooth(relevance_BRC, _cells(relevance_BRC, mask_BHW, cells)).clamp(min=0).double()
    total_B = positive_BHW.sum((1, 2))
    inside_B = (positive_BHW * mask_BHW).sum((1, 2))
    return torch.where(total_B > 0, inside_B / total_B.where(total_B > 0, 1.0), 0.0).float()


def average_precision(relevance_BRC: Tensor, mask_BHW: Tensor, *, cells: Cells | None = None) -> Tensor:
    """(B,) as scikit-learn defines it: pixels of equal relevance come together."""
    pixels_BN = smooth(relevance_BRC, _cells(relevance_BRC, mask_BHW, cells)).flatten(1)
    sorted_BN, order_BN = pixels_BN.sort(dim=1, descending=True)
    is_object_BN = mask_BHW.flatten(1).gather(1, order_BN)
    found_BN = is_object_BN.cumsum(1)
    num_pixels = pixels_BN.shape[1]
    precision_BN = found_BN.double() / torch.arange(1, num_pixels + 1, device=pixels_BN.device)
    is_last_BN = torch.ones_like(is_object_BN)
    is_last_BN[:, :-1] = sorted_BN[:, 1:] != sorted_BN[:, :-1]
    # Every pixel has the precision at the last of those that are equal to it.
    place_N = torch.arange(num_pixels, device=pixels_BN.device)
    last_BN = torch.where(is_last_BN, place_N, num_pixels - 1).flip(1).cummin(1).values.flip(1)
    return ((precision_BN.gather(1, last_BN) * is_object_BN).sum(1) / found_BN[:, -1]).float()


def overlaps(relevance_BRC: Tensor, mask_BHW: Tensor, *, cells: Cells | None = None) -> tuple[Tensor, Tensor]:
    """Pixels (B, 2) in both, and in either, of the mask and what is above the mean; of the object and of the rest."""
    pixels_BHW = smooth(relevance_BRC, _cells(relevance_BRC, mask_BHW, cells))
    # Rounded from float64, so that nothing of a constant map is above its mean.
    mean_B11 = pixels_BHW.mean((1, 2), keepdim=True, dtype=torch.float64).float()
    said_BHW = pixels_BHW > mean_B11
    pairs = ((said_BHW, mask_BHW), (~said_BHW, ~mask_BHW))
    intersection_B2 = torch.stack([(said & true).sum((1, 2)) for said, true in pairs], dim=1)
    union_B2 = torch.stack([(said | true).sum((1, 2)) for said, true in pairs], dim=1)
    return intersection_B2, union_B2


def mean_iou(intersection_B2: Tensor, union_B2: Tensor) -> float:
    """Of all images together, however many batches they were counted in."""
    return (intersection_B2.sum(0) / union_B2.sum(0).clamp(min=1)).mean().item()


def oracle(mask_BHW: Tensor, cells: Cells) -> Tensor:
    """(B, R, C) the best that a map of these cells could be: the share of each cell that is object."""
    num_pixels_1RC = cells.summed(torch.ones_like(mask_BHW[:1], dtype=torch.float32))
    return cells.summed(mask_BHW.float()) / num_pixels_1RC.clamp(min=1)


def smooth(relevance_BRC: Tensor, cells: Cells) -> Tensor:
    """(B, H, W) float32: bilinear between the middles of the cells, constant beyond the outermost."""
    weights = []
    for count, side, length in zip(*_sides(cells), cells.image_size, strict=True):
        place_L = ((torch.arange(length, dtype=torch.float64) + 0.5) / side - 0.5).clamp(0, count - 1)
        apart_LR = place_L[:, None] - torch.arange(count)
        weights.append((1 - apart_LR.abs()).clamp(min=0).to(relevance_BRC.device))
    rows_HR, columns_WC = weights
    # Rounded from float64, so that a map that is constant stays so.
    return (rows_HR @ relevance_BRC.double() @ columns_WC.mT).float()


def _sides(cells: Cells) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many, and how many pixels each, along the rows and along the columns."""
    return (cells.rows, cells.columns), (cells.height, cells.width)


def _shifted(mask_BHW: Tensor, rows_R: Tensor, columns_C: Tensor) -> Tensor:
    """The mask at these pixels, (B, R, C); false outside the image."""
    height, width = mask_BHW.shape[1:]
    is_inside_RC = ((rows_R >= 0) & (rows_R < height))[:, None] & ((columns_C >= 0) & (columns_C < width))
    found_BRC = mask_BHW[:, rows_R.clamp(0, height - 1)][:, :, columns_C.clamp(0, width - 1)]
    return found_BRC & is_inside_RC.to(mask_BHW.device)


def _cells(relevance_BRC: Tensor, mask_BHW: Tensor, cells: Cells | None) -> Cells:
    """Of masks that have an object, one for each map."""
    if mask_BHW.ndim != 3 or mask_BHW.dtype != torch.bool:
        raise MiradaError(
            f"masks are {mask_BHW.dtype} of shape {tuple(mask_BHW.shape)}: expected true and false (images, height, "
            "width), true on the object"
        )
    require_maps(relevance_BRC, len(mask_BHW))
    empty_B = ~mask_BHW.flatten(1).any(1)
    if empty_B.any():
        raise MiradaError(
            f"the mask of image {int(empty_B.nonzero()[0, 0])} has no object: leave such images out, there is nothing "
            "to point at"
        )
    return cells_for(relevance_BRC, (mask_BHW.shape[1], mask_BHW.shape[2]), cells)
