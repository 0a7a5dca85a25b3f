"""Cells of an image: the patches that tokens stand for, in pixels.

A grid may reach beyond the image, which was padded right and below, or leave pixels there out, which were cropped.

Shape letters: B batch, C channels, H and W pixels, R rows and C columns of cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_COVERED = 256  # cells that are covered one after the other, for one image


@dataclass(frozen=True)
class Cells:
    """`height` and `width` of a cell in pixels, `rows` and `columns` of them from the upper left corner."""

    image_size: tuple[int, int]
    rows: int
    columns: int
    height: int
    width: int

    @property
    def count(self) -> int:
        return self.rows * self.columns

    def of_pixels(self, device: torch.device | None = None) -> Tensor:
        """(H, W) the number of the cell that each pixel lies in, −1 where it lies in none."""
        row_H, column_W = (torch.arange(side, device=device) for side in self.image_size)
        row_H, column_W = row_H // self.height, column_W // self.width
        inside = (row_H < self.rows)[:, None] & (column_W < self.columns)
        return torch.where(inside, row_H[:, None] * self.columns + column_W, -1)

    def spread(self, values_BRC: Tensor) -> Tensor:
        """(B, H, W): every pixel has the value of its cell; 0 where it lies in none."""
        cell_HW = self.of_pixels(values_BRC.device)
        found = values_BRC.flatten(1)[:, cell_HW.clamp(min=0)]
        return torch.where(cell_HW >= 0, found, 0.0)

    def summed(self, pixels_BHW: Tensor) -> Tensor:
        """(B, R, K): the sum over the pixels of each cell."""
        cell_HW = self.of_pixels(pixels_BHW.device)
        inside = cell_HW >= 0
        total = pixels_BHW.new_zeros(len(pixels_BHW), self.count)
        total.index_add_(1, cell_HW[inside], pixels_BHW[:, inside])
        return total.unflatten(1, (self.rows, self.columns))

    def coarser(self, most: int = MAX_COVERED) -> Cells:
        """At most so many: neighbours are joined to squares."""
        factor = 1
        while -(-self.rows // factor) * -(-self.columns // factor) > most:
            factor += 1
        return Cells(
            self.image_size,
            -(-self.rows // factor),
            -(-self.columns // factor),
            self.height * factor,
            self.width * factor,
        )


def cells_of(image_size: tuple[int, int], grid: tuple[int, int], patch_size: int | None = None) -> Cells:
    """The cells of a grid on an image: squares of the patch size, or of a power of two times it for a finer or coarser
    grid. Where no such square fits, cells share the image."""
    height, width = image_size
    if patch_size is not None:
        if (height // patch_size, width // patch_size) == tuple(grid):  # what is left over was cropped
            return Cells((height, width), *grid, patch_size, patch_size)
        for side in _sides(patch_size):
            if (-(-height // side), -(-width // side)) == tuple(grid):
                return Cells((height, width), *grid, side, side)
    return Cells((height, width), *grid, -(-height // grid[0]), -(-width // grid[1]))


def _sides(patch_size: int) -> list[int]:
    """The patch size, its halves, its doubles."""
    halves = [patch_size >> number for number in range(patch_size.bit_length()) if patch_size % (1 << number) == 0]
    return halves + [patch_size << number for number in range(1, 8)]
