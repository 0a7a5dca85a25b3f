"""The squares in which a raster is mapped.

All tiles have the same size, so the last ones reach beyond the right and bottom edges; what lies there is NaN. Tiles
begin at multiples of STEP, and so do the patches in which a model sees them (see dense.py): a pixel has the same place
in the same patch whatever the size of the tiles, which is why the map does not depend on it by a single bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirada.errors import MiradaError

STEP = 64  # pixels; also a multiple of 16, as tiles of a TIFF must be
DEFAULT_TILE = 512


@dataclass(frozen=True)
class Tile:
    number: int
    rows: tuple[int, int]  # the first, and the one after the last
    cols: tuple[int, int]

    def grown(self, halo: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns with the surroundings that its outermost pixels look at."""
        return (self.rows[0] - halo, self.rows[1] + halo), (self.cols[0] - halo, self.cols[1] + halo)


def whole_steps(tile: int) -> int:
    """The next size of a tile that is a multiple of STEP."""
    if tile < 1:
        raise MiradaError(f"tile is {tile}: expected the side of a square in pixels, such as {DEFAULT_TILE}.")
    return -(-tile // STEP) * STEP


def tiles_of(size: tuple[int, int], tile: int) -> list[Tile]:
    """Row by row, as the blocks of a TIFF are numbered."""
    down, across = (-(-side // tile) for side in size)
    return [
        Tile(row * across + col, (row * tile, (row + 1) * tile), (col * tile, (col + 1) * tile))
        for row in range(down)
        for col in range(across)
    ]
