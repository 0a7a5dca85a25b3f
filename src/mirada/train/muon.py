"""Muon: a matrix is moved by its orthogonalised momentum, all else by AdamW (Jordan 2024).

    m ← μ m + (1 − μ) g,    u = μ m + (1 − μ) g,    u = U S Vᵀ,    w ← (1 − η λ) w − η · 0.2 √max(rows, columns) · U Vᵀ

All directions of a matrix learn equally fast, also those in which its gradients are small. With the factor of Liu 2025
a step is as long as AdamW's, so that one learning rate η and one decay λ serve both.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from mirada.machine.processes import Processes
from mirada.train.sharding import placed, whole

MOMENTUM = 0.95
# a, b, c of each iteration: of all quintics the nearest to 1 on what the one before leaves, and one in a hundred more:
# beyond their intervals they grow without bound. The first one's is 0.003 to 1 (after Amsel 2025). Singular values in
# there end within 0.79 and 1.21, in four iterations nearer than in Jordan's five alike; smaller ones are lifted less.
QUINTICS = (
    (8.302, -24.0426, 17.47),
    (4.0078, -2.9266, 0.5425),
    (3.4896, -2.5654, 0.5028),
    (2.4973, -1.8126, 0.4217),
)
TINY = 1e-7
MOST_TOGETHER = 2**20  # numbers of matrices that are computed at once
LONG = 1.5  # times the shorter side: from there on the iteration without X has fewer products
OUTPUTS = ("head", "to_colour", "own_output")  # what they, or modules that they are part of, are called


class Muon(torch.optim.AdamW):
    """AdamW, but groups with `is_orthogonal` have matrices, or kernels (out, in, …), that Muon moves.

    Processes that step together compute some of the matrices each. In float32: the bfloat16 of torch's own Muon takes
    twenty times as long on processors without such units.
    """

    def __init__(self, *args: Any, processes: Processes, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.processes = processes
        self._step_supports_amp_scaling = False  # the fused AdamW does; so overflowing steps of float16 are left out

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
        moved = [weight for weight in group["params"] if weight.grad is not None]
        alike = _alike(moved)
        # In less than float32 the iteration would not stay near 1.
        stacks = (torch.stack([whole(self._ahead(each)).flatten(1).float() for each in weights]) for weights in alike)
        for weights, directions in zip(alike, self.processes.divided(orthogonalised, stacks), strict=True):
            length = 0.2 * max(directions.shape[1:]) ** 0.5
            for weight, direction in zip(weights, directions, strict=True):
                step = placed(direction.reshape(weight.shape), like=weight)
                weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(step, alpha=-group["lr"] * length)

    def _ahead(self, weight: Tensor) -> Tensor:
        """u: its momentum, with the gradient once more, as the next step will see it (Nesterov)."""
        assert weight.grad is not None
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
            state["step"] = torch.zeros(())  # not counted, but AdamW loads no state without it
        momentum = state["momentum"].lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(momentum, MOMENTUM)


def _alike(weights: list[Tensor]) -> list[list[Tensor]]:
    """Small ones of one shape as a matrix together: one product of all takes less time than one for each."""
    found: dict[tuple[int, ...], list[Tensor]] = {}
    for weight in weights:
        found.setdefault((weight.shape[0], math.prod(weight.shape[1:])), []).append(weight)
    together = {shape: max(1, MOST_TOGETHER // math.prod(shape)) for shape in found}
    return [
        group[first : first + together[shape]]
        for shape, group in found.items()
        for first in range(0, len(group), together[shape])
    ]


def orthogonalised(matrices: Tensor) -> Tensor:
    """About U Vᵀ of each U S Vᵀ, by the iteration X ← P X, P = a + b G + c G², G = X Xᵀ (Newton and Schulz).

    All P commute with G, so G ← P G P follows without X: what is iterated has the smaller side of X squared, and X, of
    which a kernel's other side is many times longer, is multiplied once, by the product of all P. Where the sides are
    about as long, the iteration as it stands has fewer products.
    """
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    # Not torch's norm: in float32 it is short by up to a hundredth for a large matrix of one rank, by which the largest
    # singular value would exceed 1.
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + TINY)
    is_long = x.shape[-1] > LONG * x.shape[-2]
    x = _product(x @ x.mT) @ x if is_long else _iterated(x)
    return x.mT if is_tall else x


def _iterated(x: Tensor) -> Tensor:
    for quintic in QUINTICS:
        x = _factor(x @ x.mT, quintic) @ x
    return x


def _product(gram: Tensor) -> Tensor:
    """Of all P."""
    product = factor = _factor(gram, QUINTICS[0])
    for quintic in QUINTICS[1:]:
        gram = factor @ gram @ factor
        factor = _factor(gram, quintic)
        product = product @ factor
    return product


def _factor(gram: Tensor, quintic: tuple[float, float, float]) -> Tensor:
    """P"""
    a, b, c = quintic
    factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
    factor.diagonal(dim1=-2, dim2=-1).add_(a)
    return factor


def matrices(model: nn.Module) -> set[int]:
    """The ids of weights that are maps between features: of linear layers and of kernels that see all channels, but not
    of outputs, whose rows are classes or tokens."""
    return {
        id(part.weight)
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
        and getattr(part, "groups", 1) == 1
        and not any(word.endswith(OUTPUTS) for word in name.split("."))
    }
