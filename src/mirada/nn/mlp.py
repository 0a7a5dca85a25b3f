"""The part of a block that looks at one token at a time.

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.nn.dropout import Dropout


class MLP(nn.Module):
    """y = W_2 g(W_1 x + b_1) + b_2, dropout after g (Vaswani 2017, eq. 2, with g = ReLU; ViT: g = GELU).

    `activation` is g: nn.ReLU(), nn.GELU() (exact: timm, BERT), nn.GELU("tanh") (GPT-2, Flax), QuickGELU() (CLIP,
    ImageGPT). Dropout of the output belongs to the residual around it. Xavier uniform weights, biases zero.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        activation: nn.Module | None = None,
        *,
        dropout: float = 0.0,
        out_dim: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.expand = nn.Linear(dim, hidden_dim, bias)
        self.activation = nn.GELU() if activation is None else activation
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(hidden_dim, dim if out_dim is None else out_dim, bias)
        _initialise(self.expand, self.contract)

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.contract(self.dropout(self.activation(self.expand(x_BND))))


class GatedMLP(nn.Module):
    """y = W_2 (g(W_g x) ⊙ W_1 x), dropout before W_2 (Shazeer 2020): SwiGLU with g = SiLU, GEGLU with GELU, GLU with σ.

    Three matrices: `hidden_dim` = ⅔ of an MLP's keeps its number of weights. Xavier uniform weights, biases zero.
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        activation: nn.Module | None = None,
        *,
        dropout: float = 0.0,
        out_dim: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias)
        self.expand = nn.Linear(dim, hidden_dim, bias)
        self.activation = nn.SiLU() if activation is None else activation
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(hidden_dim, dim if out_dim is None else out_dim, bias)
        _initialise(self.gate, self.expand, self.contract)

    def forward(self, x_BND: Tensor) -> Tensor:
        return self.contract(self.dropout(self.activation(self.gate(x_BND)) * self.expand(x_BND)))


class QuickGELU(nn.Module):
    """g(x) = x σ(1.702 x): the approximation of GELU that CLIP and ImageGPT were trained with."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


def _initialise(*layers: nn.Linear) -> None:
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
