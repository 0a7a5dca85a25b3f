"""Muon: a matrix is moved by its orthogonalised momentum, all else by AdamW (Jordan 2024).

    m ← μ m + (1 − μ) g,    u = μ m + (1 − μ) g,    u = U S Vᵀ,    w ← (1 − η λ) w − η · 0.2 √max(rows, columns) · U Vᵀ

All directions of a matrix learn equally fast, also those in which its gradients are small. With the factor of Liu 2025
a step is as long as AdamW's, so that one learning rate η and one decay λ serve both.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.nn.embedding import TokenEmbedding
from mirada.train.sharding import placed, whole

MOMENTUM = 0.95
STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)  # of the iteration; singular values end within 0.7 and 1.2
TINY = 1e-7


class Muon(torch.optim.AdamW):
    """AdamW, but groups with `is_orthogonal` have matrices, or kernels (out, in, …), that Muon moves.

    In float32: the bfloat16 of torch's own Muon takes twenty times as long on processors without such units.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        assert closure is None, "not needed here"
        groups = self.param_groups
        for group in groups:
            if group["is_orthogonal"]:
                self._step_matrices(group)
        self.param_groups = [group for group in groups if not group["is_orthogonal"]]
        try:
            super().step()
        finally:
            self.param_groups = groups

    def _step_matrices(self, group: dict) -> None:
        for weight in group["params"]:
            if weight.grad is None:
                continue
            state = self.state[weight]
            if not state:
                state["momentum"] = torch.zeros_like(weight)
                state["step"] = torch.zeros(())  # not counted, but AdamW loads no state without it
            momentum = state["momentum"].lerp_(weight.grad, 1 - MOMENTUM)
            matrix = whole(weight.grad.lerp(momentum, MOMENTUM)).flatten(1)
            length = 0.2 * max(matrix.shape) ** 0.5
            direction = placed(orthogonalised(matrix).view(weight.shape), like=weight)
            weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-group["lr"] * length)


def orthogonalised(matrix: Tensor) -> Tensor:
    """About U Vᵀ of U S Vᵀ, by the quintic iteration X ← a X + (b A + c A²) X with A = X Xᵀ (Newton and Schulz)."""
    a, b, c = COEFFICIENTS
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + TINY)
    for _ in range(STEPS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def matrices(model: nn.Module) -> list[nn.Parameter]:
    """Maps between features: no tables of tokens, no heads, whose rows are classes, no kernels of one channel each."""
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding | TokenEmbedding)}

    def is_map(name: str, weight: nn.Parameter) -> bool:
        is_head = any(part.endswith("head") for part in name.split("."))
        is_depthwise = weight.ndim > 2 and weight.shape[1] == 1
        return weight.ndim >= 2 and not (is_head or is_depthwise or id(weight) in tables)

    return [weight for name, weight in model.named_parameters() if is_map(name, weight)]
