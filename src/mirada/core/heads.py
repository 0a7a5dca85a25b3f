"""How heads are made and joined: x, memory → q, k, v for H heads, and H results → one.

Shape letters: B batch, H heads, N queries, M keys, D model dim, K head dim, V value dim.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core.score import ScaledDot, Score
from mirada.errors import MiradaError

# One wide matrix product is faster than three narrow ones, once there are enough tokens to pay for joining the weights.
MIN_ROWS_FOR_ONE_PRODUCT = 512


class Concatenated(nn.Module):
    """MultiHead = Concat(head_1 … head_H) W^O,  head_h = Att(X W^Q_h, Y W^K_h, Y W^V_h) (Vaswani 2017, section 3.2.2).

    Widths are free: K ≠ V, a memory of another width, another width out, fewer key and value heads than query heads.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        head_dim: int | None = None,
        value_dim: int | None = None,
        memory_dim: int | None = None,
        out_dim: int | None = None,
        num_key_heads: int | None = None,
        bias: bool = True,
        out_bias: bool = True,
    ) -> None:
        super().__init__()
        if head_dim is None and dim % num_heads:
            raise MiradaError(f"dim={dim} cannot be shared by num_heads={num_heads}: give head_dim")
        self.num_heads = num_heads
        self.num_key_heads = num_heads if num_key_heads is None else num_key_heads
        if num_heads % self.num_key_heads:
            raise MiradaError(f"num_heads={num_heads} is not a multiple of num_key_heads={self.num_key_heads}")
        self.head_dim = dim // num_heads if head_dim is None else head_dim
        self.value_dim = self.head_dim if value_dim is None else value_dim
        memory_dim = dim if memory_dim is None else memory_dim
        self.to_q = nn.Linear(dim, self.num_heads * self.head_dim, bias)
        self.to_k = nn.Linear(memory_dim, self.num_key_heads * self.head_dim, bias)
        self.to_v = nn.Linear(memory_dim, self.num_key_heads * self.value_dim, bias)
        self.to_out = nn.Linear(num_heads * self.value_dim, dim if out_dim is None else out_dim, out_bias)
        for projection in (self.to_q, self.to_k, self.to_v, self.to_out):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def default_score(self) -> Score:
        return ScaledDot()

    def make_mix(self) -> nn.Module | None:
        """What these heads do to the weights before they meet the values."""
        return None

    def queries(self, x_BND: Tensor) -> Tensor:
        return split(self.to_q(x_BND), self.num_heads)

    def keys(self, memory_BMD: Tensor) -> Tensor:
        return split(self.to_k(memory_BMD), self.num_key_heads)

    def values(self, memory_BMD: Tensor) -> Tensor:
        return split(self.to_v(memory_BMD), self.num_key_heads)

    def project(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of tokens that look at each other."""
        projections = (self.to_q, self.to_k, self.to_v)
        # An exported or compiled model must serve every batch size: it cannot choose by the number of rows.
        is_short = torch.compiler.is_compiling() or x_BND.shape[0] * x_BND.shape[1] < MIN_ROWS_FOR_ONE_PRODUCT
        if is_short or not all(map(_is_plain, projections)):
            return self.queries(x_BND), self.keys(x_BND), self.values(x_BND)
        weight = torch.cat([projection.weight for projection in projections])
        bias = None if self.to_q.bias is None else torch.cat([projection.bias for projection in projections])
        q, k, v = F.linear(x_BND, weight, bias).split([projection.out_features for projection in projections], dim=-1)
        return split(q, self.num_heads), split(k, self.num_key_heads), split(v, self.num_key_heads)

    def join(self, heads_BHNV: Tensor) -> Tensor:
        return self.to_out(heads_BHNV.transpose(1, 2).flatten(2))


def _is_plain(layer: nn.Module) -> bool:
    """Its matrix is all it does: no adapter stands in its place, nobody listens to it."""
    return type(layer) is nn.Linear and not (layer._forward_hooks or layer._forward_pre_hooks)


def split(x_BNC: Tensor, num_heads: int) -> Tensor:
    """(B, N, H·K) → (B, H, N, K)."""
    return x_BNC.unflatten(-1, (num_heads, -1)).transpose(1, 2)


class ReAttention(Concatenated):
    """As concatenated, with α ← Norm(Θᵀ α) across heads (DeepViT, Zhou 2021, eq. 3). Rows no longer sum to one."""

    def make_mix(self) -> nn.Module:
        return HeadMixing(self.num_heads)


class HeadMixing(nn.Module):
    """Norm(Θᵀ α): a 1×1 convolution over heads with bias, then batch normalisation, as in the published code."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.theta = nn.Conv2d(num_heads, num_heads, 1)
        self.norm = nn.BatchNorm2d(num_heads)

    def forward(self, weights_BHNM: Tensor) -> Tensor:
        return self.norm(self.theta(weights_BHNM))


class Averaged(Concatenated):
    """h = mean over heads of head_h (+ b): GAT's output layer (Veličković 2018, eq. 6). The width out is V."""

    def __init__(self, dim: int, num_heads: int, *, out_bias: bool = True, **widths: Any) -> None:
        super().__init__(dim, num_heads, out_bias=out_bias, **widths)
        del self.to_out
        self.out_bias = nn.Parameter(torch.zeros(self.value_dim)) if out_bias else None

    def join(self, heads_BHNV: Tensor) -> Tensor:
        out_BNV = heads_BHNV.mean(1)
        return out_BNV if self.out_bias is None else out_BNV + self.out_bias


class Collaborative(Concatenated):
    """head_h = softmax((X W̃^Q diag(m_h) W̃^Kᵀ Yᵀ + 1 (Y b_h)ᵀ) / √(K̃/H)) Y W^V_h (Cordonnier 2020, eq. 7).

    All heads share one query and one key projection of width `shared_dim` = K̃ and mix its channels by m_h. The content
    bias b_h keeps what the query's bias contributes. Without a score of its own, attention divides by √(K̃/H) as here.
    """

    def __init__(self, dim: int, num_heads: int, *, shared_dim: int | None = None, **widths: Any) -> None:
        super().__init__(dim, num_heads, **widths)
        self.shared_dim = num_heads * self.head_dim if shared_dim is None else shared_dim
        memory_dim = self.to_v.in_features
        self.to_q = nn.Linear(dim, self.shared_dim, bias=False)
        self.to_k = nn.Linear(memory_dim, self.shared_dim, bias=False)
        self.to_content = nn.Linear(memory_dim, num_heads, bias=False)
        self.mixing = nn.Parameter(torch.randn(num_heads, self.shared_dim) * num_heads**-0.5)

    @property
    def scale(self) -> float:
        return (self.shared_dim / self.num_heads) ** -0.5

    def default_score(self) -> Score:
        return ScaledDot(self.scale)

    def queries(self, x_BND: Tensor) -> Tensor:
        mixed = self.to_q(x_BND)[:, None] * self.mixing[:, None, :]
        # The content bias rides along as H more channels of the key, of which head h picks its own.
        own = torch.eye(self.num_heads, dtype=mixed.dtype, device=mixed.device)[:, None, :]
        return torch.cat([mixed, own.expand(*mixed.shape[:-1], -1)], dim=-1)

    def keys(self, memory_BMD: Tensor) -> Tensor:
        shared = torch.cat([self.to_k(memory_BMD), self.to_content(memory_BMD)], dim=-1)
        return shared[:, None].expand(-1, self.num_heads, -1, -1)

    def project(self, x_BND: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.queries(x_BND), self.keys(x_BND), self.values(x_BND)

    def load_concatenated(self, source: Concatenated) -> None:
        """Take over trained concatenated heads: exact if K̃ ≥ H·K, with one-hot blocks as the mixing."""
        heads, width = source.num_heads, source.head_dim
        if self.shared_dim < heads * width:
            raise MiradaError(
                f"shared_dim={self.shared_dim} is below {heads}·{width}: an exact copy needs at least that"
            )
        rest = self.shared_dim - heads * width
        # logits are divided by √(K̃/H) here and by √K there.
        stretch = (self.shared_dim / heads / width) ** 0.5
        blocks = torch.eye(heads).repeat_interleave(width, dim=1) * stretch
        bias = source.to_q.bias
        with torch.no_grad():
            self.to_q.weight.copy_(F.pad(source.to_q.weight, (0, 0, 0, rest)))
            self.to_k.weight.copy_(F.pad(source.to_k.weight, (0, 0, 0, rest)))
            self.mixing.copy_(F.pad(blocks, (0, rest)))
            self.to_content.weight.zero_()
            if bias is not None:
                per_head = source.to_k.weight.unflatten(0, (heads, width)) * bias.view(heads, width, 1)
                self.to_content.weight.copy_(per_head.sum(1) * stretch)
            self.to_v.load_state_dict(source.to_v.state_dict())
            self.to_out.load_state_dict(source.to_out.state_dict())
