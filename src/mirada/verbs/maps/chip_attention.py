"""Where a place looks on its chip, from recorded weights. Shape letters: H and W pixels, B tiles, N queries, K keys."""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core.record import Maps
from mirada.nn.around import TILE, LookAround
from mirada.systems import Spatioformer


def around(model: Spatioformer, maps: Maps) -> Tensor:
    """(H, W) weights of the middle pixel on its chip, which sum to 1: the mean over heads and members.

    Where several layers look around, one after the other, their weights are multiplied: what a pixel saw has seen
    others itself. Residuals are left out.
    """
    side = model.chip_size
    members = [_of_tower(f"towers.{number}", tower, maps, side) for number, tower in enumerate(model.towers)]
    return torch.stack(members).mean(0).view(side, side)


def _of_tower(name: str, tower: torch.nn.Module, maps: Maps, side: int) -> Tensor:
    """(side²,) of one member."""
    seen_NK: Tensor | None = None
    for number, layer in enumerate(tower.around):  # type: ignore[arg-type]
        assert isinstance(layer, LookAround)
        recorded = next(key for key in maps if key.startswith(f"{name}.around.{number}."))
        layer_NK = _whole(maps[recorded].mean(1), side, layer.radius)
        seen_NK = layer_NK if seen_NK is None else layer_NK @ seen_NK
        side -= 2 * layer.radius
    assert seen_NK is not None and len(seen_NK) == 1, "only the middle pixel is left"
    return seen_NK[0]


def _whole(weights_BNK: Tensor, side: int, radius: int) -> Tensor:
    """(inner², side²) of all pixels that look, put together from tiles (see LookAround)."""
    inner = side - 2 * radius
    tile = min(TILE, inner)
    across = -(-inner // tile)
    rim = tile + 2 * radius
    whole = weights_BNK.new_zeros(inner, inner, side, side)
    for number, weights_NK in enumerate(weights_BNK):
        top, left = (tile * at for at in divmod(number, across))
        weights = weights_NK.view(tile, tile, rim, rim)
        tall, wide = min(tile, inner - top), min(tile, inner - left)
        seen = weights[:tall, :wide, : side - top, : side - left]
        whole[top : top + tall, left : left + wide, top : top + rim, left : left + rim] = seen
    return whole.view(inner * inner, side * side)


def received(maps: Maps, size: tuple[int, int]) -> Tensor:
    """(H, W) how much each pixel is looked at by all tokens, in the mean over layers, heads and tokens; sums to 1."""
    num = size[0] * size[1]
    layers = [maps[name][0].mean((0, 1))[-num:] for name in maps]
    weights = torch.stack(layers).mean(0)
    return (weights / weights.sum()).view(*size)
