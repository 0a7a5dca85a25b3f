"""Fewer, wider tokens from one stage of a hierarchy to the next.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.nn.patches import Size


class PatchMerging(nn.Module):
    """z = W LN([x_{2r,2c}; x_{2r+1,2c}; x_{2r,2c+1}; x_{2r+1,2c+1}]): 2 × 2 tokens become one (Swin, Liu 2021, 3.1).

    An odd side is padded with zeros right and below, so a grid of n × m becomes ⌈n/2⌉ × ⌈m/2⌉. Gives tokens and grid.
    """

    def __init__(self, dim: int, out_dim: int | None = None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim if out_dim is None else out_dim, bias=False)
        nn.init.trunc_normal_(self.reduction.weight, std=0.02)

    def forward(self, x_BND: Tensor, grid: Size) -> tuple[Tensor, Size]:
        rows, columns = -(-grid[0] // 2), -(-grid[1] // 2)
        x = x_BND.unflatten(1, grid)
        if grid != (2 * rows, 2 * columns):
            x = F.pad(x, (0, 0, 0, grid[1] % 2, 0, grid[0] % 2))
        cells = x.unflatten(2, (columns, 2)).unflatten(1, (rows, 2))  # B rows 2 columns 2 D
        merged = cells.permute(0, 1, 3, 4, 2, 5).flatten(3).flatten(1, 2)
        return self.reduction(self.norm(merged)), (rows, columns)
