"""Pixels that look around themselves, on chips and on whole rasters alike.

Shape letters: B batch, H and W pixels, D dim, r radius, N pixels as tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.core import Attention, BiasTable, Concatenated, Grid, Places, plane
from mirada.nn.mlp import MLP

FEW_PIXELS = 256  # of a chip: all pairs at once; more of them are cut into tiles by the kernel of grids


class LookAround(nn.Module):
    """h = x + attention(norm x, norm x within the radius),   y = h + MLP(norm h)

    (B, H, W, D) → (B, H − 2r, W − 2r, D): pixels at the rim are looked at but do not look, as they would not see all.
    """

    def __init__(self, dim: int, num_heads: int, radius: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.radius = radius
        position = BiasTable((radius + 1, radius + 1), num_heads)
        self.norm = nn.LayerNorm(dim)
        self.attention = Attention(Concatenated(dim, num_heads), neighbours=Grid(radius), position=position)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = MLP(dim, 2 * dim, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BHWD: Tensor, valid_BHW: Tensor) -> Tensor:
        """Pixels that are not valid are seen by nobody."""
        seen_BhwD = self._seen(self.norm(x_BHWD), valid_BHW.flatten(1))
        h_BhwD = self.inner(x_BHWD) + self.dropout(seen_BhwD)
        return h_BhwD + self.dropout(self.mlp(self.mlp_norm(h_BhwD)))

    def inner(self, x_BHW: Tensor) -> Tensor:
        """Without the rim."""
        r, (height, width) = self.radius, x_BHW.shape[1:3]
        return x_BHW[:, r : height - r, r : width - r]

    def _seen(self, x_BHWD: Tensor, valid_BN: Tensor) -> Tensor:
        height, width = x_BHWD.shape[1:3]
        whole, x_BND = plane(height, width, device=x_BHWD.device), x_BHWD.flatten(1, 2)
        if height * width > FEW_PIXELS:
            seen_BND = self.attention(x_BND, valid_BM=valid_BN, places=whole)
            return self.inner(seen_BND.unflatten(1, (height, width)))
        rows = self.inner(torch.arange(height * width, device=x_BHWD.device).view(1, height, width)).flatten()
        looking = Places(whole.index_N[rows], whole.coords_NA[rows], whole.size)
        seen_BND = self.attention(x_BND[:, rows], x_BND, valid_BM=valid_BN, places=looking, memory_places=whole)
        return seen_BND.unflatten(1, (height - 2 * self.radius, width - 2 * self.radius))
