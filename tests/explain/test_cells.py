"""Cells of a grid on an image that is padded, cropped, finer or coarser than its patches."""

import pytest
import torch

from mirada.explain.cells import Cells, cells_of


@pytest.mark.parametrize(
    ("image_size", "grid", "patch_size", "side"),
    [
        ((20, 28), (5, 7), 4, (4, 4)),
        ((17, 21), (5, 6), 4, (4, 4)),  # padded
        ((7, 8), (2, 2), 3, (3, 3)),  # cropped
        ((21, 29), (11, 15), 4, (2, 2)),  # finer tokens, padded
        ((21, 29), (2, 2), 4, (16, 16)),  # coarser ones
        ((9, 11), (9, 11), None, (1, 1)),
        ((10, 9), (4, 3), None, (3, 3)),  # nobody knows: the image is shared
    ],
)
def test_sides_of_a_cell(image_size, grid, patch_size, side):
    cells = cells_of(image_size, grid, patch_size)
    assert (cells.height, cells.width) == side and (cells.rows, cells.columns) == grid


def test_pixels_have_the_number_of_their_cell_and_none_where_they_were_cropped():
    cells = Cells((5, 7), 2, 3, 2, 2)
    assert cells.of_pixels().tolist() == [
        [0, 0, 1, 1, 2, 2, -1],
        [0, 0, 1, 1, 2, 2, -1],
        [3, 3, 4, 4, 5, 5, -1],
        [3, 3, 4, 4, 5, 5, -1],
        [-1] * 7,
    ]
    values = torch.arange(6.0).view(1, 2, 3)
    spread = cells.spread(values)
    assert spread[0, 2, 5] == 5 and not spread[0, 4].any() and not spread[0, :, 6].any()


def test_sums_over_cells_undo_spreading():
    cells = Cells((5, 7), 3, 4, 2, 2)  # padded: cells at the edge hold fewer pixels
    values = torch.rand(2, 3, 4)
    counts = cells.summed(torch.ones(2, 5, 7))
    assert counts[0].tolist() == [[4, 4, 4, 2], [4, 4, 4, 2], [2, 2, 2, 1]]
    torch.testing.assert_close(cells.summed(cells.spread(values)), values * counts)


def test_many_cells_are_joined():
    cells = Cells((112, 224), 28, 56, 4, 4).coarser(most=256)
    assert (cells.rows, cells.columns, cells.height, cells.width) == (10, 19, 12, 12)
    assert cells.coarser(most=256) == cells
