"""Tensors of another size that do the same work: kernels over patches, tables of positions.

Shape letters: D model dim, S and C channels before and after, P and Q sides of a patch before and after.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.position.added import resize_grid

Size = tuple[int, ...]


def other_channels(kernel_DSPP: Tensor, channels: int) -> Tensor:
    """W′_c = (S/C) W_{c mod S} for C channels instead of S; W′ = Σ_s W_s for one (the rule of timm).

    For one channel this is what the old kernel makes of a grey image. With C > 1 the channels take their turns, and the
    factor keeps the size of the result.
    """
    old = kernel_DSPP.shape[1]
    if channels == 1:
        return kernel_DSPP.sum(1, keepdim=True)
    turns = torch.arange(channels) % old
    return kernel_DSPP[:, turns] * (old / channels)


def other_patch(kernel_DCPP: Tensor, patch_size: tuple[int, int]) -> Tensor:
    """w′ = (Bᵀ)⁺ w with B the matrix that resizes a patch of P × P to Q × Q (FlexiViT, Beyer 2023, eq. 3).

    ⟨w′, B x⟩ = ⟨w, x⟩ for every patch x where Q ≥ P: a resized image has the old tokens. Where Q < P, ⁺ makes the
    difference least. B is bicubic, and averages where it shrinks. Resizing w itself would scale the tokens.
    """
    old = kernel_DCPP.shape[-2], kernel_DCPP.shape[-1]
    if old == patch_size:
        return kernel_DCPP
    pixels = torch.eye(old[0] * old[1], dtype=torch.float64).reshape(-1, 1, *old)
    B_PQ = F.interpolate(pixels, size=patch_size, mode="bicubic", antialias=True).flatten(1)
    resized = kernel_DCPP.to(torch.float64).flatten(2) @ torch.linalg.pinv(B_PQ).mT
    return resized.unflatten(2, patch_size).to(kernel_DCPP.dtype)


def other_grid(table_ND: Tensor, size: Size, new_size: Size, num_extra: int = 0) -> Tensor:
    """Positions at another grid, as the model itself interpolates them at another image size; extra rows are kept."""
    if size == new_size:
        return table_ND
    return torch.cat([table_ND[:num_extra], resize_grid(table_ND[num_extra:], size, new_size)])
