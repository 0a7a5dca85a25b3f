"""Images into tokens: an image of H × W pixels becomes N = (H/P)·(W/P) vectors, and the grid (H/P, W/P) they lie on.

Shape letters: B batch, C channels, H and W pixels, N patches, L = P²·C numbers of one patch, D model dim.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.errors import MiradaError

Size = tuple[int, int]
Remainder = Literal["refuse", "pad", "crop"]


def as_size(side: int | Size) -> Size:
    """An int is a square."""
    return (side, side) if isinstance(side, int) else (side[0], side[1])


def patches_of(image_BCHW: Tensor, patch_size: int | Size) -> Tensor:
    """(B, C, H, W) → (B, N, C·P·P): patches in raster order, within each channel, row, column, as in a kernel.

    With patch_size=1 this turns a feature map into tokens.
    """
    height, width = as_size(patch_size)
    blocks = image_BCHW.unflatten(2, (-1, height)).unflatten(4, (-1, width))
    return blocks.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def image_of(patches_BNL: Tensor, grid: Size, patch_size: int | Size) -> Tensor:
    """The way back: image_of(patches_of(x, P), grid, P) = x."""
    height, width = as_size(patch_size)
    blocks = patches_BNL.unflatten(1, grid).unflatten(3, (-1, height, width))
    return blocks.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


def fit(image_BCHW: Tensor, patch_size: int | Size, remainder: Remainder) -> Tensor:
    """Make the sides multiples of the patch: refuse other sides, pad zeros right and below, or crop right and below."""
    patch = as_size(patch_size)
    size = image_BCHW.shape[-2], image_BCHW.shape[-1]
    left = size[0] % patch[0], size[1] % patch[1]
    if left == (0, 0):
        return image_BCHW
    if remainder == "pad":
        return F.pad(image_BCHW, (0, -size[1] % patch[1], 0, -size[0] % patch[0]))
    if remainder == "crop" and size[0] >= patch[0] and size[1] >= patch[1]:
        return image_BCHW[..., : size[0] - left[0], : size[1] - left[1]]
    raise MiradaError(
        f"an image of {size[0]} × {size[1]} pixels is no whole number of patches of {patch[0]} × {patch[1]}: "
        'choose another size, or remainder="pad"' + (' or "crop"' if remainder == "refuse" else "")
    )


def _checked(remainder: Remainder) -> Remainder:
    if remainder not in ("refuse", "pad", "crop"):
        raise MiradaError(f"remainder={remainder!r}: must be 'refuse', 'pad' or 'crop'")
    return remainder


class LinearPatches(nn.Module):
    """z_n = E x_n + b with x_n the P²·C numbers of patch n (ViT, Dosovitskiy 2020, eq. 1). Gives tokens and their grid.

    Initialised as `ConvPatches`: Xavier uniform on the D × P²C matrix, bias zero.
    """

    def __init__(
        self, in_channels: int, dim: int, patch_size: int | Size, remainder: Remainder = "refuse", bias: bool = True
    ) -> None:
        super().__init__()
        self.patch_size, self.remainder = as_size(patch_size), _checked(remainder)
        self.projection = nn.Linear(in_channels * self.patch_size[0] * self.patch_size[1], dim, bias)
        _initialise(self.projection)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Size]:
        image = fit(image_BCHW, self.patch_size, self.remainder)
        grid = image.shape[-2] // self.patch_size[0], image.shape[-1] // self.patch_size[1]
        return self.projection(patches_of(image, self.patch_size)), grid


class ConvPatches(nn.Module):
    """The same map as a convolution whose kernel and stride are the patch: conv.weight.flatten(1) = linear.weight."""

    def __init__(
        self, in_channels: int, dim: int, patch_size: int | Size, remainder: Remainder = "refuse", bias: bool = True
    ) -> None:
        super().__init__()
        self.patch_size, self.remainder = as_size(patch_size), _checked(remainder)
        self.projection = nn.Conv2d(in_channels, dim, self.patch_size, self.patch_size, bias=bias)
        _initialise(self.projection)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Size]:
        # A bare convolution would drop the remainder without a word.
        features_BDHW = self.projection(fit(image_BCHW, self.patch_size, self.remainder))
        return features_BDHW.flatten(2).mT, (features_BDHW.shape[-2], features_BDHW.shape[-1])


class ShiftedPatches(nn.Module):
    """z_n = E LN([x, x↖, x↗, x↙, x↘]_n) + b: each patch also sees its neighbourhood (SPT, Lee 2021).

    The four copies are moved by half a patch along the diagonals, zeros coming in from outside. Initialised as
    `LinearPatches`.
    """

    def __init__(self, in_channels: int, dim: int, patch_size: int | Size, remainder: Remainder = "refuse") -> None:
        super().__init__()
        self.patch_size, self.remainder = as_size(patch_size), _checked(remainder)
        if min(self.patch_size) < 2:
            raise MiradaError(f"patch_size={patch_size}: shifting by half a patch needs patches of at least 2 × 2")
        length = 5 * in_channels * self.patch_size[0] * self.patch_size[1]
        self.norm = nn.LayerNorm(length)
        self.projection = nn.Linear(length, dim)
        _initialise(self.projection)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Size]:
        image = fit(image_BCHW, self.patch_size, self.remainder)
        grid = image.shape[-2] // self.patch_size[0], image.shape[-1] // self.patch_size[1]
        shifted = torch.cat([image, *diagonal_shifts(image, self.patch_size)], dim=1)
        return self.projection(self.norm(patches_of(shifted, self.patch_size))), grid


def diagonal_shifts(image_BCHW: Tensor, patch_size: Size) -> list[Tensor]:
    """The image moved by half a patch down-right, down-left, up-right and up-left, in this order."""
    down, right = patch_size[0] // 2, patch_size[1] // 2
    return [F.pad(image_BCHW, (dx, -dx, dy, -dy)) for dy in (down, -down) for dx in (right, -right)]


class ConvStem(nn.Module):
    """3×3 convolutions, each with its stride, norm and activation, then 1×1 to D (Xiao 2021, "early convolutions").

    Padding is 1, so a side n becomes ⌈n/stride⌉ and no pixel is dropped. Initialised as torch does (He uniform).

        ConvStem(3, dim=192, widths=(24, 48, 96, 192), strides=(2, 2, 2, 2))      as a patch of 16
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        widths: tuple[int, ...],
        strides: tuple[int, ...],
        norm: type[nn.Module] = nn.BatchNorm2d,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        if len(widths) != len(strides):
            raise MiradaError(f"a stem of {len(widths)} widths {widths} has {len(strides)} strides {strides}")
        layers: list[nn.Module] = []
        for before, width, stride in zip((in_channels, *widths), widths, strides, strict=False):
            # The norm that follows has a bias of its own.
            layers += [nn.Conv2d(before, width, 3, stride, padding=1, bias=False), norm(width), activation()]
        self.layers = nn.Sequential(*layers)
        self.projection = nn.Conv2d(widths[-1] if widths else in_channels, dim, 1)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Size]:
        features_BDHW = self.projection(self.layers(image_BCHW))
        return features_BDHW.flatten(2).mT, (features_BDHW.shape[-2], features_BDHW.shape[-1])


def _initialise(projection: nn.Linear | nn.Conv2d) -> None:
    # On the flattened kernel: for a convolution torch would count P² outputs per channel.
    nn.init.xavier_uniform_(projection.weight.view(projection.weight.shape[0], -1))
    if projection.bias is not None:
        nn.init.zeros_(projection.bias)
