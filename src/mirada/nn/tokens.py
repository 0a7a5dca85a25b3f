"""Tokens that stand for no piece of the input: z = [t_1; …; t_X; x_1; …; x_N] (class, distillation, register tokens).

Shape letters: B batch, N tokens, X extra tokens, D model dim.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ExtraTokens(nn.Module):
    """z = [t; x] with learned t: one for a class token, two with DeiT's distillation token, more as registers.

    Normal(0, 0.02), not zeros: several tokens that start equal, without positions, would stay equal.
    """

    def __init__(self, dim: int, num_extra: int = 1, std: float = 0.02) -> None:
        super().__init__()
        self.num_extra = num_extra
        self.weight = nn.Parameter(torch.randn(num_extra, dim) * std)

    def forward(self, x_BND: Tensor) -> Tensor:
        return torch.cat([self.weight.expand(x_BND.shape[0], -1, -1), x_BND], dim=1)

    def split(self, z_BND: Tensor) -> tuple[Tensor, Tensor]:
        """The extra tokens and the rest."""
        return z_BND[:, : self.num_extra], z_BND[:, self.num_extra :]

    def valid(self, valid_BN: Tensor) -> Tensor:
        """The padding mask of [t; x]: extra tokens are always real."""
        return F.pad(valid_BN, (self.num_extra, 0), value=True)
