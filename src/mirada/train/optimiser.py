"""Optimisers, and which parameters are decayed."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from mirada.machine.processes import Processes
from mirada.train.muon import Muon, matrices

ALONE = Processes()
OptimiserName = Literal["adamw", "adam", "sgd", "muon"]


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Matrices and kernels are decayed; biases, norms, tokens, positions and other tables of ≤ 1 axis are not."""
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    spared = {id(p) for name, p in model.named_parameters() if p.ndim <= 1 or _is_table(name)}
    for parameter in model.parameters():
        if parameter.requires_grad:
            (free if id(parameter) in spared else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": free, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _is_table(name: str) -> bool:
    return any(word in name for word in ("position", "token", "table", "temperature"))


def _with_matrices(groups: list[dict], model: nn.Module) -> list[dict]:
    """The same groups, but matrices have groups of their own."""
    moved = matrices(model)
    divided = [
        {
            **group,
            "is_orthogonal": is_orthogonal,
            "params": [weight for weight in group["params"] if (id(weight) in moved) == is_orthogonal],
        }
        for group in groups
        for is_orthogonal in (True, False)
    ]
    return [group for group in divided if group["params"]]


def make_optimiser(
    name: OptimiserName,
    model: nn.Module,
    *,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float],
    fused: bool = True,
    processes: Processes = ALONE,
) -> torch.optim.Optimizer:
    """processes: those that step together, always all of them."""
    groups = parameter_groups(model, weight_decay)
    if name == "sgd":
        return torch.optim.SGD(groups, lr=learning_rate, momentum=betas[0], nesterov=betas[0] > 0)
    if name == "muon":
        divided = _with_matrices(groups, model)
        return Muon(divided, lr=learning_rate, betas=betas, fused=fused, foreach=not fused, processes=processes)
    # adam: the decay is a term of the loss (Kingma 2015); adamw: apart from it (Loshchilov 2019).
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    # The fused step takes a quarter of the time of the default one on the CPUs we measured (mirada.machine.precision).
    return kind(groups, lr=learning_rate, betas=betas, fused=fused, foreach=not fused)
