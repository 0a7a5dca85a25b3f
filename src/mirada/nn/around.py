"""Pixels that look around themselves, on chips and on whole rasters alike.

Shape letters: B batch, H and W pixels, D dim, r radius, N pixels as tokens.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attention, BiasTable, Concatenated, Grid, Places, plane
from mirada.nn.dropout import Dropout
from mirada.nn.mlp import MLP

TILE = 8  # pixels of a side that look together


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
        self.dropout = Dropout(dropout)

    def forward(self, x_BHWD: Tensor, valid_BHW: Tensor) -> Tensor:
        """Pixels that are not valid are seen by nobody."""
        seen_BhwD = self._seen(self.norm(x_BHWD), valid_BHW)
        h_BhwD = self.inner(x_BHWD) + self.dropout(seen_BhwD)
        return h_BhwD + self.dropout(self.mlp(self.mlp_norm(h_BhwD)))

    def inner(self, x_BHW: Tensor) -> Tensor:
        """Without the rim."""
        r, (height, width) = self.radius, x_BHW.shape[1:3]
        return x_BHW[:, r : height - r, r : width - r]

    def _seen(self, x_BHWD: Tensor, valid_BHW: Tensor) -> Tensor:
        """A raster is cut into tiles with a rim, which are many chips: all have the same places and biases."""
        r, (height, width) = self.radius, x_BHWD.shape[1:3]
        tall, wide = (min(TILE, side - 2 * r) for side in (height, width))
        rows, columns = (-(-(side - 2 * r) // tile) for side, tile in ((height, tall), (width, wide)))
        missing = (0, columns * wide + 2 * r - width, 0, rows * tall + 2 * r - height)

        def tiles(x_BHWD: Tensor) -> Tensor:
            """(B · tiles, pixels of a tile with its rim, D). What is added below and right, no pixel inside sees."""
            padded = F.pad(x_BHWD, (0, 0, *missing))
            cut = padded.unfold(1, tall + 2 * r, tall).unfold(2, wide + 2 * r, wide)  # B, rows, columns, D, tile
            return cut.movedim(3, -1).flatten(3, 4).flatten(0, 2)

        whole = plane(tall + 2 * r, wide + 2 * r, device=x_BHWD.device)
        inner = self.inner(whole.index_N.view(1, *whole.size)).flatten()
        looking = Places(whole.index_N[inner], whole.coords_NA[inner], whole.size)
        valid_BN = None if valid_BHW.all() else tiles(valid_BHW[..., None])[..., 0]
        x_BND = tiles(x_BHWD)
        seen_BND = self.attention(x_BND[:, inner], x_BND, valid_BM=valid_BN, places=looking, memory_places=whole)
        seen = seen_BND.view(-1, rows, columns, tall, wide, seen_BND.shape[-1]).transpose(2, 3)
        return seen.flatten(3, 4).flatten(1, 2)[:, : height - 2 * r, : width - 2 * r]
