"""Attention within windows of a grid, whatever the size of the grid.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attention, Windows, plane
from mirada.nn.patches import Size

Fitting = Callable[[Windows, Size], tuple[Windows, Size]]  # the windows of a layer on a grid, and the grid padded


def masked(windows: Windows, grid: Size) -> tuple[Windows, Size]:
    """Each axis by itself: one that is no longer than a window is one window and is not shifted. Nothing is padded.

    Windows over the edge hold fewer tokens: the paper's footnote pads them, and here nobody looks at the padding.
    """
    size = min(windows.size[0], grid[0]), min(windows.size[1], grid[1])
    down, right = (
        0 if side <= extent else step for side, extent, step in zip(grid, windows.size, windows.shift, strict=True)
    )
    return Windows(size, (down, right)), grid


def published(windows: Windows, grid: Size) -> tuple[Windows, Size]:
    """As in the published code: zeros fill the windows over the edge and are looked at like tokens.

    If either side is no longer than a window, windows are squares of the shorter side and none are shifted.
    """
    if min(grid) <= max(windows.size):
        windows = Windows((min(grid), min(grid)))
    return windows, (_multiple(grid[0], windows.size[0]), _multiple(grid[1], windows.size[1]))


def _multiple(side: int, extent: int) -> int:
    return -(-side // extent) * extent


class WindowedAttention(nn.Module):
    """h = attention(x) with N_i the window of token i; `fitting` says what windows are on a given grid."""

    def __init__(self, attention: Attention, windows: Windows, fitting: Fitting = masked) -> None:
        super().__init__()
        self.attention, self.windows, self.fitting = attention, windows, fitting

    def forward(self, x_BND: Tensor, *, grid: Size) -> Tensor:
        windows, padded = self.fitting(self.windows, grid)
        if padded != grid:
            x = F.pad(x_BND.unflatten(1, grid), (0, 0, 0, padded[1] - grid[1], 0, padded[0] - grid[0]))
            x_BND = x.flatten(1, 2)
        places = plane(*padded, device=x_BND.device)
        if padded == grid:
            return self.attention(x_BND, places=places, neighbours=windows)
        out_BND = self.attention(x_BND, places=replace(places, unpadded=grid), neighbours=windows)
        return out_BND.unflatten(1, padded)[:, : grid[0], : grid[1]].flatten(1, 2)

    def extra_repr(self) -> str:
        return f"windows={self.windows}, fitting={self.fitting.__name__}"
