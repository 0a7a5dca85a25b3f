"""Attention whose queries, keys and values are pooled on their grid first.

Shape letters: B batch, H heads, N queries, D model dim, K head dim, r rows and c columns of a grid.
"""

from __future__ import annotations

from torch import Tensor, nn

from mirada.core import Attend, Concatenated, Decomposed, plane
from mirada.nn.patches import Size


def halved(grid: Size, stride: int) -> Size:
    """⌈n/stride⌉ on each axis: the grid after a pooling that is padded on both sides."""
    return -(-grid[0] // stride), -(-grid[1] // stride)


class HeadPooling(nn.Module):
    """y = LN(depthwise 3×3 convolution of x with a stride): one kernel per channel, shared by all heads (MViTv2)."""

    def __init__(self, head_dim: int, stride: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.conv = nn.Conv2d(head_dim, head_dim, 3, stride, padding=1, groups=head_dim, bias=False)
        self.norm = nn.LayerNorm(head_dim, eps=eps)

    def forward(self, x_BHNK: Tensor, grid: Size) -> Tensor:
        # Channels come last as they do in tokens: the convolution takes that layout as it is.
        images = x_BHNK.flatten(0, 1).unflatten(1, grid).permute(0, 3, 1, 2)
        pooled_BHNK = self.conv(images).permute(0, 2, 3, 1).flatten(1, 2).unflatten(0, x_BHNK.shape[:2])
        return self.norm(pooled_BHNK)


class PooledAttention(nn.Module):
    """h = attention(q, k, v) + q with q = P_Q(X W^Q), k = P_K(X W^K), v = P_V(X W^V), P a HeadPooling (Li 2022, 4.1).

    A stride of the queries makes the grid coarser, one of the keys makes attention cheaper. `+ q` is residual pooling.
    Gives tokens and their grid. `grid` is the one that the position's tables are made for.
    """

    def __init__(
        self, dim: int, num_heads: int, grid: Size, *, query_stride: int, key_stride: int, out_dim: int | None = None
    ) -> None:
        super().__init__()
        out_dim = dim if out_dim is None else out_dim
        head_dim = out_dim // num_heads
        self.query_stride, self.key_stride = query_stride, key_stride
        self.heads = Concatenated(dim, num_heads, head_dim=head_dim, out_dim=out_dim)
        self.pool_q = HeadPooling(head_dim, query_stride)
        self.pool_k = HeadPooling(head_dim, key_stride)
        self.pool_v = HeadPooling(head_dim, key_stride)
        self.attend = Attend(position=Decomposed(head_dim, *self.grids(grid)))

    def grids(self, grid: Size) -> tuple[Size, Size]:
        """That of the queries, which is that of the tokens it gives, and that of the keys."""
        return halved(grid, self.query_stride), halved(grid, self.key_stride)

    def forward(self, x_BND: Tensor, grid: Size) -> tuple[Tensor, Size]:
        q, k, v = self.heads.project(x_BND)
        q_BHNK, k, v = self.pool_q(q, grid), self.pool_k(k, grid), self.pool_v(v, grid)
        coarser, of_keys = self.grids(grid)
        queries, keys = plane(*coarser, device=x_BND.device), plane(*of_keys, device=x_BND.device)
        out_BHNK = self.attend(q_BHNK, k, v, queries=queries, keys=keys)
        return self.heads.join(out_BHNK + q_BHNK), coarser
