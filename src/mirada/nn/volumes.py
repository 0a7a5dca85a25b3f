"""Volumes into tokens: S slices of H × W pixels become N = (S/T)·(H/P)·(W/P) vectors on a lattice.

Shape letters: B batch, C channels, S slices, H and W pixels, T slices and P sides of a patch, N patches, D model dim.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

VolumeSize = tuple[int, int, int]  # slices, height, width


def cubes_of(volume_BCSHW: Tensor, patch_size: VolumeSize) -> Tensor:
    """(B, C, S, H, W) → (B, N, C·T·P·P): patches in raster order, within each as in a kernel."""
    slices, height, width = patch_size
    blocks = volume_BCSHW.unflatten(2, (-1, slices)).unflatten(4, (-1, height)).unflatten(6, (-1, width))
    return blocks.permute(0, 2, 4, 6, 1, 3, 5, 7).flatten(4).flatten(1, 3)


def lattice_of(volume_BCSHW: Tensor, patch_size: VolumeSize) -> VolumeSize:
    """How many patches there are along each axis of such volumes, the last ones perhaps in part."""
    slices, height, width = (-(-n // p) for n, p in zip(volume_BCSHW.shape[2:], patch_size, strict=True))
    return slices, height, width


class VolumePatches(nn.Module):
    """z_n = E x_n + b with x_n the T·P²·C numbers of patch n; zeros are padded behind, below and right.

    Gives tokens and their lattice. Initialised as `LinearPatches`: Xavier uniform, bias zero.
    """

    def __init__(self, in_channels: int, dim: int, patch_size: VolumeSize) -> None:
        super().__init__()
        self.patch_size = patch_size
        slices, height, width = patch_size
        self.projection = nn.Linear(in_channels * slices * height * width, dim)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, volume_BCSHW: Tensor) -> tuple[Tensor, VolumeSize]:
        short = [-n % p for n, p in zip(volume_BCSHW.shape[2:], self.patch_size, strict=True)]
        whole = F.pad(volume_BCSHW, (0, short[2], 0, short[1], 0, short[0]))
        return self.projection(cubes_of(whole, self.patch_size)), lattice_of(volume_BCSHW, self.patch_size)
