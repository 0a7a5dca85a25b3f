"""y = x Wᵀ + b, fast for a handful of rows too: a step of decoding has one for each text.

Shape letters: N rows, D width in, Z width out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# So few rows times a matrix that is read along its rows take MKL up to twice as long as the transposed product does.
FEW = range(2, 16)
MIN_WEIGHTS = 2**16  # below, turning things round costs more than it saves


def linear(x: Tensor, weight_ZD: Tensor, bias_Z: Tensor | None = None) -> Tensor:
    """F.linear, computed as (W xᵀ + b)ᵀ where that is faster; the values may then lie in memory column by column."""
    # A traced model must serve every batch size, so it may not ask how many rows there are; backward likes rows better.
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or weight_ZD.numel() < MIN_WEIGHTS:
        return F.linear(x, weight_ZD, bias_Z)
    num_rows = x.shape[:-1].numel()
    if num_rows not in FEW or x.device.type != "cpu":
        return F.linear(x, weight_ZD, bias_Z)
    x_DN = x.reshape(num_rows, -1).T
    y_ZN = weight_ZD @ x_DN if bias_Z is None else torch.addmm(bias_Z[:, None], weight_ZD, x_DN)
    return y_ZN.T.unflatten(0, x.shape[:-1])


class Linear(nn.Linear):
    """nn.Linear with `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)
