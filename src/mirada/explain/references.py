"""Maps that know nothing of the model: what a method has to beat.

    random   every cell independent, uniform in 0..1
    centre   exp(−(u² + v²) / 2σ²), u and v from the middle of the image in units of its sides, σ = ¼

Photographers put things in the middle, so a map that always points there can look good: a method that does not beat it
has said nothing. Shape letters: B batch, R rows and C columns of cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.cells import Cells, cells_of

SIGMA = 0.25


def random_map(batch: int, grid: tuple[int, int], *, seed: int = 0) -> Tensor:
    """(B, R, C), another one for each image, the same ones for the same seed."""
    return torch.rand(batch, *grid, generator=torch.Generator().manual_seed(seed))


def centre_map(batch: int, grid: tuple[int, int]) -> Tensor:
    """(B, R, C), the same for all images."""
    u_R, v_C = ((torch.arange(cells) + 0.5) / cells - 0.5 for cells in grid)
    return (-(u_R[:, None] ** 2 + v_C**2) / (2 * SIGMA**2)).exp().expand(batch, -1, -1)


def require_maps(relevance_BRC: Tensor, batch: int) -> None:
    """One finite map of cells for each of so many images."""
    if relevance_BRC.ndim != 3 or 0 in relevance_BRC.shape or not relevance_BRC.is_floating_point():
        raise MiradaError(
            f"relevance is {relevance_BRC.dtype} of shape {tuple(relevance_BRC.shape)}: expected floating-point maps "
            "(images, rows, columns)"
        )
    if len(relevance_BRC) != batch:
        raise MiradaError(f"{len(relevance_BRC)} maps are given for {batch} images: give one map per image")
    bad_B = ~relevance_BRC.isfinite().flatten(1).all(1)
    if bad_B.any():
        raise MiradaError(
            f"the map of image {int(bad_B.nonzero()[0, 0])} has values that are no finite numbers: it cannot be ranked"
        )


def cells_for(relevance_BRC: Tensor, image_size: tuple[int, int], cells: Cells | None) -> Cells:
    """The cells of these maps on such images; where they are not said, they share the image."""
    _, rows, columns = relevance_BRC.shape
    if cells is None:
        return cells_of(image_size, (rows, columns))
    if (cells.rows, cells.columns) != (rows, columns) or cells.image_size != image_size:
        raise MiradaError(
            f"cells are {cells.rows} × {cells.columns} on {cells.image_size[0]} × {cells.image_size[1]} pixels, for "
            f"maps of {rows} × {columns} on {image_size[0]} × {image_size[1]}: give the cells of these maps and images"
        )
    return cells
