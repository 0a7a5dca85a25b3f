"""Many tokens into one vector: (B, N, D) → (B, D). All take `valid_BN`, True for real tokens.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.core import Attend, Dot


class ClassToken(nn.Module):
    """y = x_0: the class token has looked at all others (ViT, BERT)."""

    def forward(self, x_BND: Tensor, valid_BN: Tensor | None = None) -> Tensor:
        return x_BND[:, 0]


class Mean(nn.Module):
    """y = (1/N) Σ_n x_n over real tokens, leaving out `num_extra` tokens in front; without any real token, zeros."""

    def __init__(self, num_extra: int = 0) -> None:
        super().__init__()
        self.num_extra = num_extra

    def forward(self, x_BND: Tensor, valid_BN: Tensor | None = None) -> Tensor:
        x_BND = x_BND[:, self.num_extra :]
        if valid_BN is None:
            return x_BND.mean(1)
        valid_BN1 = valid_BN[:, self.num_extra :, None]
        # Not a product with the mask: NaN · 0 is NaN.
        return x_BND.masked_fill(~valid_BN1, 0.0).sum(1) / valid_BN1.sum(1).clamp(min=1)

    def extra_repr(self) -> str:
        return f"num_extra={self.num_extra}"


class AttentionPooling(nn.Module):
    """y = attention(query, x): a learned query looks at all tokens (Lee 2019, "PMA" with one seed; CoCa, SigLIP).

    `attention` is any attention to a memory: AttentionPooling(dim, Attention(Concatenated(dim, num_heads))). The query
    starts at normal(0, 0.02).
    """

    def __init__(self, dim: int, attention: nn.Module) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, dim) * 0.02)
        self.attention = attention

    def forward(self, x_BND: Tensor, valid_BN: Tensor | None = None) -> Tensor:
        query_B1D = self.query.expand(x_BND.shape[0], 1, -1)
        return self.attention(query_B1D, x_BND, valid_BM=valid_BN)[:, 0]


class SequencePooling(nn.Module):
    """y = softmax(x w)ᵀ x: attention with a learned query w, unscaled dot, keys and values x (Hassani 2021).

    The published layer has a bias too, which the softmax cancels. w starts uniform in ±1/√D, as that layer does.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(1, dim).uniform_(-(dim**-0.5), dim**-0.5))
        self.attend = Attend(Dot())

    def forward(self, x_BND: Tensor, valid_BN: Tensor | None = None) -> Tensor:
        query_B11D = self.query.expand(x_BND.shape[0], 1, 1, -1)
        x_B1ND = x_BND[:, None]
        return self.attend(query_B11D, x_B1ND, x_B1ND, valid_BM=valid_BN)[:, 0, 0]
