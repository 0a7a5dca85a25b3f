"""Batch norms of processes that train together: their statistics are those of the whole batch.

    μ = Σ_p s_p μ_p,    σ² = Σ_p s_p (σ_p² + (μ_p − μ)²),    s_p = n_p / Σ n_p

of the n_p values that process p has of a channel. torch's own SyncBatchNorm is for GPUs. Shape letters: P processes,
C channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from mirada.machine.processes import others_needed, together


def synchronise(model: nn.Module) -> None:
    """In place; parameters, statistics and names stay what they are."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.__class__ = SyncedNorm


class SyncedNorm(_BatchNorm):
    """In training y = γ (x − μ)/√(σ² + ε) + β with μ and σ² of all processes; else as any batch norm."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        num_channels = x.shape[1]
        own_var_C, own_mean_C = torch.var_mean(x.float(), [0, *range(2, x.ndim)], correction=0)
        count = own_mean_C.new_tensor([x.numel() / num_channels])
        count_P1, mean_PC, var_PC = of_all(torch.cat([count, own_mean_C, own_var_C])).split(
            [1, num_channels, num_channels], 1
        )
        total = count_P1.sum()
        share_P1 = count_P1 / total
        mean_C = (share_P1 * mean_PC).sum(0)
        var_C = (share_P1 * (var_PC + (mean_PC - mean_C).square())).sum(0)
        self._remember(mean_C, var_C, total)
        shape = (1, num_channels, *([1] * (x.ndim - 2)))
        scale_C = (var_C + self.eps).rsqrt()
        shift_C = -mean_C * scale_C
        if self.affine:
            scale_C, shift_C = scale_C * self.weight, shift_C * self.weight + self.bias
        return x * scale_C.view(shape).to(x.dtype) + shift_C.view(shape).to(x.dtype)

    @torch.no_grad()
    def _remember(self, mean_C: Tensor, var_C: Tensor, total: Tensor) -> None:
        if not self.track_running_stats:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean_C, share)  # type: ignore[union-attr]
        self.running_var.lerp_(var_C * (total / (total - 1).clamp(min=1)), share)  # type: ignore[union-attr]

    def _check_input_dim(self, input: Tensor) -> None:
        """Any."""


def of_all(own: Tensor) -> Tensor:
    """(P, …) the rows of all processes; gradients flow back to where each came from."""
    processes = together()
    is_own_P = torch.arange(processes.count, device=own.device) == processes.rank
    return _Sum.apply(is_own_P[:, None] * own)


class _Sum(torch.autograd.Function):
    """Σ over processes, forwards and backwards: a row has a part in what each of them makes of it."""

    @staticmethod
    def forward(context: Any, tensor: Tensor) -> Tensor:
        return _summed(tensor)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return _summed(gradient)


def _summed(tensor: Tensor) -> Tensor:
    total = tensor.clone()
    with others_needed():
        torch.distributed.all_reduce(total)
    return total
