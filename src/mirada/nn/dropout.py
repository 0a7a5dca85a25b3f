"""Numbers left out at random while a model trains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 2**16  # of the 16 bits that are drawn for a number


class Dropout(nn.Dropout):
    """y = x ⊙ m / (1 − p),     m_i = 0 with probability p, else 1

    nn.Dropout with p to the nearest 2⁻¹⁶ on a CPU. Four numbers share a draw there: random numbers come one after the
    other, on one thread, and with a draw for each they take a tenth of a small Transformer's training step.
    """

    def forward(self, input: Tensor) -> Tensor:
        left_out = round(self.p * LEVELS)
        is_usual = torch.compiler.is_compiling() or input.device.type != "cpu" or self.inplace
        if not self.training or is_usual or left_out in (0, LEVELS):
            return super().forward(input)
        draws = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        level = draws.view(torch.int16)[: input.numel()].view(input.shape)
        mask = (level >= left_out - LEVELS // 2).to(input.dtype)
        return input * mask.mul_(LEVELS / (LEVELS - left_out))
