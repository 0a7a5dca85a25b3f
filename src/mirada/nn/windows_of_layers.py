"""Chips: the square of pixels around a place, and the chips of all places of a raster.

Shape letters: B batch, L layers, H W height and width of a raster, h w of the places whose chip lies inside, k chip.
"""

from __future__ import annotations

from torch import Tensor

from mirada.errors import MiradaError


def halo_of(chip_size: int) -> int:
    """How far a chip reaches from the place in its middle."""
    if chip_size < 1 or chip_size % 2 == 0:
        raise MiradaError(f"chip_size={chip_size}: must be odd, as the place is the middle pixel")
    return chip_size // 2


def require_chips(layers_BLHW: Tensor, num_layers: int, chip_size: int) -> None:
    """A raster would be answered too, for other places than were asked for; and other layers would pass for bands."""
    found, height, width = layers_BLHW.shape[1:]
    if (found, height, width) != (num_layers, chip_size, chip_size):
        raise MiradaError(
            f"{found} layers of {height} × {width} pixels: this model takes chips of {num_layers} layers (bands, "
            f"covariates, longitude, latitude) and {chip_size} × {chip_size} pixels; use dense for a raster"
        )


def windows_of(layers_BLHW: Tensor, chip_size: int) -> tuple[Tensor, tuple[int, int, int]]:
    """((B·h·w, L, k, k), (B, h, w)): all windows that lie inside, h = H − k + 1, row by row."""
    windows_BLhwkk = layers_BLHW.unfold(2, chip_size, 1).unfold(3, chip_size, 1)
    batch, _, height, width = windows_BLhwkk.shape[:4]
    return windows_BLhwkk.permute(0, 2, 3, 1, 4, 5).flatten(0, 2), (batch, height, width)
