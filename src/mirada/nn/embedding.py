"""Token numbers into vectors, and vectors back into scores of tokens.

Shape letters: B batch, N tokens, D model dim, T tokens of the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class TokenEmbedding(nn.Module):
    """x_i = √D · e_{t_i} (Vaswani 2017, section 3.4). `scale` replaces √D: BERT and GPT use scale=1.

    Normal(0, 1/√D), so that the scaled vectors have unit variance; `std` replaces 1/√D (BERT and GPT: 0.02).
    """

    def __init__(self, num_tokens: int, dim: int, scale: float | None = None, std: float | None = None) -> None:
        super().__init__()
        self.scale = dim**0.5 if scale is None else scale
        self.weight = nn.Parameter(torch.randn(num_tokens, dim) * (dim**-0.5 if std is None else std))

    @classmethod
    def from_pretrained(cls, matrix_TD: Tensor, scale: float | None = None) -> TokenEmbedding:
        """Start from given vectors, one row per token, copied; they are trained further unless frozen."""
        embedding = cls(matrix_TD.shape[0], matrix_TD.shape[1], scale)
        embedding.weight = nn.Parameter(matrix_TD.detach().clone())
        return embedding

    def forward(self, token_BN: Tensor) -> Tensor:
        return self.scale * F.embedding(token_BN, self.weight)

    def unembed(self, h_BND: Tensor) -> Tensor:
        """logits = h Eᵀ with the same E, unscaled (Press & Wolf 2017): tied weights. An untied one is nn.Linear."""
        return F.linear(h_BND, self.weight)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, scale={self.scale:g}"
