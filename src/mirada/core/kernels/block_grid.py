"""Neighbourhoods on a plane, cut into tiles: Grid(radius) tile by tile with a halo, Windows one window at a time.

Shape letters: B batch, H heads, N tokens, K channels, C tiles, n queries and m keys of a tile.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.core.kernels.blocks import attend_blocks, refuses_blocks
from mirada.core.kernels.call import Call
from mirada.core.neighbours import Grid, Windows
from mirada.core.places import Places, plane
from mirada.core.position.relative import BiasTable
from mirada.core.remembered import remembered

MIN_TILE = 4


def refuses(call: Call) -> str | None:
    if not isinstance(call.neighbours, Grid | Windows):
        return "the neighbourhood is neither a grid nor windows"
    if call.queries is None or len(call.queries.size) != 2 or call.queries.num_extra:
        return "the tokens are not on a plane, or some have no place on it"
    return refuses_blocks(call)


def run(call: Call) -> Tensor:
    assert call.queries is not None
    height, width = call.queries.size
    if isinstance(call.neighbours, Windows):
        return _run_windows(call, call.neighbours, height, width)
    assert isinstance(call.neighbours, Grid)
    return _run_grid(call, call.neighbours.radius, height, width)


def _run_grid(call: Call, radius: int, height: int, width: int) -> Tensor:
    tile = max(MIN_TILE, radius)
    rows, columns = -(-height // tile) * tile, -(-width // tile) * tile
    side = tile + 2 * radius

    def on_plane(x_BHNK: Tensor, halo: int) -> Tensor:
        x = x_BHNK.unflatten(-2, (height, width))
        return F.pad(x, (0, 0, halo, columns - width + halo, halo, rows - height + halo))

    def tiles(x_BHrcK: Tensor, extent: int) -> Tensor:
        x = x_BHrcK.unfold(2, extent, tile).unfold(3, extent, tile)  # B H tile-row tile-column K r c
        return x.permute(0, 1, 2, 3, 5, 6, 4).flatten(4, 5).flatten(2, 3)

    def places(halo: int, extent: int) -> tuple[Places, Tensor]:
        coords = plane(rows + 2 * halo, columns + 2 * halo, device=call.q_BHNK.device).coords_NA - halo
        coords = tiles(coords.view(1, 1, rows + 2 * halo, columns + 2 * halo, 2), extent)[0, 0]
        return _inside(coords, height, width)

    queries, _ = places(0, tile)
    keys, exists_Cm = places(radius, side)
    # The rule is asked of unclamped neighbours only: cells outside the plane are already excluded.
    allowed = (call.neighbours.allowed(queries, keys) & exists_Cm[:, None, :])[None, None]
    if call.valid_BM is not None:
        allowed = allowed & tiles(on_plane(call.valid_BM[:, None, :, None], radius), side).mT
    k, v = (tiles(on_plane(x, radius), side) for x in (call.k_BHMK, call.v_BHMV))
    out = attend_blocks(call, tiles(on_plane(call.q_BHNK, 0), tile), k, v, queries, keys, allowed)
    return _untile(out, (rows, columns), (tile, tile))[:, :, :height, :width].flatten(2, 3)


def _run_windows(call: Call, windows: Windows, height: int, width: int) -> Tensor:
    (tall, wide), (down, right) = windows.size, windows.shift
    rows, columns = -(-height // tall) * tall, -(-width // wide) * wide

    def partition(x_BHNK: Tensor) -> Tensor:
        x = F.pad(x_BHNK.unflatten(-2, (height, width)), (0, 0, 0, columns - width, 0, rows - height))
        return _windows_of(x, windows)

    places, allowed = _geometry(call.q_BHNK, windows, height, width)
    if isinstance(call.position, BiasTable):  # it asks for offsets, which are the same in every window
        places = _one_window(call.q_BHNK, tall, wide)
    if call.valid_BM is not None:
        valid = partition(call.valid_BM[:, None, :, None]).mT
        allowed = valid.expand(-1, -1, -1, tall * wide, -1) if allowed is None else allowed & valid
    q, k, v = (partition(x) for x in (call.q_BHNK, call.k_BHMK, call.v_BHMV))
    out = _untile(attend_blocks(call, q, k, v, places, places, allowed), (rows, columns), (tall, wide))
    return out.roll((down, right), dims=(2, 3))[:, :, :height, :width].flatten(2, 3)


@remembered
def _geometry(device: torch.device, windows: Windows, height: int, width: int) -> tuple[Places, Tensor | None]:
    """The places of every window's cells (C, n), and who may look at whom (1, 1, C, n, n), None if all may."""
    (tall, wide), (down, right) = windows.size, windows.shift
    rows, columns = -(-height // tall) * tall, -(-width // wide) * wide
    coords = plane(rows, columns, device=device).coords_NA.view(1, 1, rows, columns, 2)
    coords_Cn2 = _windows_of(coords, windows)[0, 0]
    places, exists_Cn = _inside(coords_Cn2, height, width)
    if not (down or right) and (rows, columns) == (height, width):
        return places, None
    group = windows.group(coords_Cn2)
    allowed = (group[:, :, None, :] == group[:, None, :, :]).all(-1) & exists_Cn[:, None, :]
    return places, allowed[None, None]


@remembered
def _one_window(device: torch.device, tall: int, wide: int) -> Places:
    """The cells of one window, which stands for all of them: (1, n)."""
    cells = plane(tall, wide, device=device)
    return Places(cells.index_N[None], cells.coords_NA[None], cells.size)


def _windows_of(x_BHrcK: Tensor, windows: Windows) -> Tensor:
    """Rolled by the shift and cut: (B, H, windows, cells of a window, K)."""
    (tall, wide), (down, right) = windows.size, windows.shift
    x = x_BHrcK.roll((-down, -right), dims=(2, 3)) if down or right else x_BHrcK
    x = x.unflatten(3, (-1, wide)).unflatten(2, (-1, tall))  # B H R tall S wide K
    return x.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def _untile(x_BHCnK: Tensor, size: tuple[int, int], tile: tuple[int, int]) -> Tensor:
    """Tiles back on their plane: (B, H, rows, columns, K)."""
    (rows, columns), (tall, wide) = size, tile
    x = x_BHCnK.unflatten(3, (tall, wide)).unflatten(2, (rows // tall, columns // wide))
    return x.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def _inside(coords: Tensor, height: int, width: int) -> tuple[Places, Tensor]:
    """Places of cells, those outside the plane moved onto it, and which cells exist."""
    size = coords.new_tensor((height, width))
    exists = ((coords >= 0) & (coords < size)).all(-1)
    coords = torch.minimum(coords.clamp(min=0), size - 1)
    return Places(coords[..., 0] * width + coords[..., 1], coords, (height, width)), exists
