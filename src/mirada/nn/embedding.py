"""Token numbers into vectors, and vectors back into scores of tokens.

Shape letters: B batch, N tokens, D model dim, T tokens of the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.errors import MiradaError


class TokenEmbedding(nn.Module):
    """x_i = √D · e_{t_i} (Vaswani 2017, section 3.4). `scale` replaces √D: BERT and GPT use scale=1.

    Normal(0, 1/√D), so that the scaled vectors have unit variance; `std` replaces 1/√D (BERT and GPT: 0.02).
    """

    def __init__(self, num_tokens: int, dim: int, scale: float | None = None, std: float | None = None) -> None:
        super().__init__()
        self.scale = dim**0.5 if scale is None else scale
        self.weight = nn.Parameter(torch.empty(num_tokens, dim))
        nn.init.normal_(self.weight, std=dim**-0.5 if std is None else std)

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


class TokenMatrices(nn.Module):
    """x = √D · E_source[t],  y = √D · E_target[t],  logits = h W_outᵀ + b: the matrices of a translator.

    tie   "all": one matrix is all three (Vaswani 2017, section 3.4), for one vocabulary; "output": W_out = E_target;
          "none": three matrices. None: "all" with one vocabulary, "output" with two.

    `num_target_tokens` is None where both languages share one vocabulary. Without `bias` there is no b.
    """

    def __init__(
        self,
        num_tokens: int,
        dim: int,
        *,
        num_target_tokens: int | None = None,
        tie: str | None = None,
        scale: float | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if tie is None:
            tie = "all" if num_target_tokens is None else "output"
        if tie not in ("all", "output", "none"):
            raise MiradaError(f"tie={tie!r}: must be one of all, output, none")
        if tie == "all" and num_target_tokens not in (None, num_tokens):
            raise MiradaError(
                f"tie='all' with {num_tokens} source and {num_target_tokens} target tokens: one matrix cannot serve "
                "two vocabularies, use tie='output'"
            )
        num_out = num_tokens if num_target_tokens is None else num_target_tokens
        # A matrix that is tied is registered once: files of weights hold no tensor twice.
        self.source = TokenEmbedding(num_tokens, dim, scale)
        self.own_target = None if tie == "all" else TokenEmbedding(num_out, dim, scale)
        self.own_output = nn.Linear(dim, num_out, bias=False) if tie == "none" else None
        self.bias = nn.Parameter(torch.zeros(num_out)) if bias else None

    @property
    def target(self) -> TokenEmbedding:
        return self.source if self.own_target is None else self.own_target

    def scores(self, h_BND: Tensor) -> Tensor:
        """(B, N, T) over the tokens of the target."""
        logits_BNT = self.target.unembed(h_BND) if self.own_output is None else self.own_output(h_BND)
        return logits_BNT if self.bias is None else logits_BNT + self.bias
