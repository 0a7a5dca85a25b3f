"""Norms that torch lacks; nn.LayerNorm and nn.RMSNorm are used as they are.

ImageGPT's "LayerNorm" subtracts no mean and has no bias: it is nn.RMSNorm(dim, eps=1e-5).

Shape letters: B batch, N tokens, D model dim.
"""

from __future__ import annotations

from torch import Tensor, nn


class TokenBatchNorm(nn.BatchNorm1d):
    """y = γ (x − μ) / √(σ² + ε) + β with μ and σ² of each channel over all B·N tokens (Ioffe & Szegedy 2015).

    σ² divides by the count; only the running variance divides by the count less one. Padding counts as tokens.
    """

    def forward(self, x_BND: Tensor) -> Tensor:
        return super().forward(x_BND.flatten(0, -2)).view(x_BND.shape)
