"""Whole-batch geometric augmentation: (images_BCHW, generator) -> images_BCHW, no Python per image.

B batch, C channels, H height, W width. Functions keep the dtype they are given unless they say so.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def random_crop_flip(
    images_BCHW: torch.Tensor, generator: torch.Generator, shift: float, flip: float, padding: str = "reflect"
) -> torch.Tensor:
    """Shift each image by up to `shift` of its sides (a crop of it, padded); mirror it with probability `flip`."""
    B, _, H, W = images_BCHW.shape
    reach_y, reach_x = round(shift * H), round(shift * W)
    down_B = torch.randint(-reach_y, reach_y + 1, (B,), generator=generator)
    right_B = torch.randint(-reach_x, reach_x + 1, (B,), generator=generator)
    mirrored_B = torch.rand(B, generator=generator) < flip
    return shift_and_mirror(images_BCHW, down_B, right_B, mirrored_B, padding)


def shift_and_mirror(
    images_BCHW: torch.Tensor,
    down_B: torch.Tensor,
    right_B: torch.Tensor,
    mirrored_B: torch.Tensor,
    padding: str = "reflect",
) -> torch.Tensor:
    """out[b, c, y, x] = images[b, c, y + down_b, x' + right_b] with x' = W - 1 - x where mirrored.

    One gather per plane does crop and flip together: on uint8 it is as fast as copying windows.
    """
    B, C, H, W = images_BCHW.shape
    row_BH = torch.arange(H) + down_B[:, None]
    column_BW = torch.arange(W) + right_B[:, None]
    column_BW = torch.where(mirrored_B[:, None], column_BW.flip(1), column_BW)
    pixel_BHW = _reflect(row_BH, H)[:, :, None] * W + _reflect(column_BW, W)[:, None, :]
    index_BCP = pixel_BHW.view(B, 1, H * W).expand(B, C, H * W).to(images_BCHW.device)
    out = images_BCHW.reshape(B, C, H * W).gather(2, index_BCP).view(B, C, H, W)
    if padding == "reflect":
        return out
    assert padding == "zero"
    inside_BHW = (_reflect(row_BH, H) == row_BH)[:, :, None] & (_reflect(column_BW, W) == column_BW)[:, None, :]
    return out * inside_BHW[:, None].to(out.device)


def random_affine(
    images_BCHW: torch.Tensor,
    generator: torch.Generator,
    probability: float,
    degrees: float = 15.0,
    shear: float = 0.15,
    translate: float = 0.1,
    scale: float = 0.15,
    mode: str = "bilinear",
) -> torch.Tensor:
    """Rotate, shear, translate and scale a random part of a float batch, each image by itself; borders are mirrored.

    In place: copying the images that stay would cost as much as turning the others.
    """
    B, _, H, W = images_BCHW.shape
    chosen = (torch.rand(B, generator=generator) < probability).nonzero()[:, 0]
    if len(chosen) == 0:
        return images_BCHW
    theta = affine_matrices(len(chosen), H, W, generator, degrees, shear, translate, scale).to(images_BCHW.device)
    chosen = chosen.to(images_BCHW.device)
    part = images_BCHW.index_select(0, chosen)
    moved = F.grid_sample(part, affine_grid(theta, (H, W)), mode=mode, padding_mode="reflection", align_corners=False)
    return images_BCHW.index_copy_(0, chosen, moved)


def affine_matrices(
    count: int,
    height: int,
    width: int,
    generator: torch.Generator,
    degrees: float,
    shear: float,
    translate: float,
    scale: float,
) -> torch.Tensor:
    """(count, 2, 3): rotation @ shear @ scale and a shift, in grid_sample's units, uniform within the given limits."""
    uniform = torch.rand(6, count, generator=generator) * 2 - 1
    angle = uniform[0] * math.radians(degrees)
    shear_x, shear_y = uniform[1] * shear, uniform[2] * shear
    zoom = torch.exp(uniform[3] * math.log1p(scale))
    cos, sin = torch.cos(angle) * zoom, torch.sin(angle) * zoom
    theta = torch.empty(count, 2, 3)
    # Grid units are half sides, so turning a non-square image needs the aspect to stay a rotation.
    theta[:, 0, 0] = cos - sin * shear_y
    theta[:, 0, 1] = (cos * shear_x - sin) * (height / width)
    theta[:, 1, 0] = (sin + cos * shear_y) * (width / height)
    theta[:, 1, 1] = sin * shear_x + cos
    theta[:, 0, 2], theta[:, 1, 2] = uniform[4] * 2 * translate, uniform[5] * 2 * translate
    return theta


def affine_grid(theta_B23: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """(B, H, W, 2): where grid_sample looks for each pixel, θ_x·x + θ_y·y + θ_1, pixels being the middles of cells.

    torch's function multiplies a tiny matrix for each pixel, which takes ten times as long.
    """
    y_H, x_W = (
        torch.arange(1 - length, length, 2, dtype=theta_B23.dtype, device=theta_B23.device) / length for length in size
    )
    by_x_B12, by_y_B12, shift_B12 = theta_B23[:, None].unbind(3)
    rows_BH12 = (y_H[:, None] * by_y_B12 + shift_B12)[:, :, None]
    return rows_BH12 + (x_W[:, None] * by_x_B12)[:, None]


def random_erase(
    images_BCHW: torch.Tensor, generator: torch.Generator, probability: float, area: tuple[float, float] = (0.02, 0.25)
) -> torch.Tensor:
    """Set one rectangle of some images to 0 (the training mean, after normalisation), in place. Zhong et al. 2017.

    The rectangle covers a uniform share of the image within `area` and has an aspect between 1/3 and 3.
    """
    B, _, H, W = images_BCHW.shape
    share, aspect, chance = torch.rand(3, B, generator=generator)
    chosen = (chance < probability).nonzero()[:, 0]
    if len(chosen) == 0:
        return images_BCHW
    share = area[0] + share[chosen] * (area[1] - area[0])
    aspect = torch.exp((aspect[chosen] * 2 - 1) * math.log(3.0))
    height = (torch.sqrt(share * aspect) * H).round().clamp(1, H).long()
    width = (torch.sqrt(share / aspect) * W).round().clamp(1, W).long()
    kept_bHW = (~random_boxes(height, width, (H, W), generator)).to(images_BCHW)
    chosen = chosen.to(images_BCHW.device)
    return images_BCHW.index_copy_(0, chosen, images_BCHW.index_select(0, chosen).mul_(kept_bHW[:, None]))


def random_boxes(
    height_B: torch.Tensor, width_B: torch.Tensor, size: tuple[int, int], generator: torch.Generator
) -> torch.Tensor:
    """(B, H, W) true inside one box per image, of the given sizes, fully inside, uniformly placed."""
    H, W = size
    place = torch.rand(2, len(height_B), generator=generator)
    top = (place[0] * (H - height_B + 1)).long().clamp(max=H - 1)[:, None]
    left = (place[1] * (W - width_B + 1)).long().clamp(max=W - 1)[:, None]
    y, x = torch.arange(H), torch.arange(W)
    in_rows = (y >= top) & (y < top + height_B[:, None])
    in_columns = (x >= left) & (x < left + width_B[:, None])
    return in_rows[:, :, None] & in_columns[:, None, :]


def _reflect(index: torch.Tensor, length: int) -> torch.Tensor:
    """Mirror positions outside 0..length-1 back inside, without repeating the border; good for one length beyond."""
    last = length - 1
    return (last - (last - index.abs()).abs()).clamp(0, last)
