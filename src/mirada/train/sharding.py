"""Weights, gradients and the state of the optimiser divided among processes that train together (FSDP).

Every process holds 1/P of each tensor, and has the whole of a layer only while it computes it.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from mirada.nn import DecoderLayer, EncoderLayer

Sharding = Literal["none", "full"]


def shard(model: nn.Module) -> None:
    """In place, layer by layer; what is in no layer is a part of its own."""
    from torch.distributed.fsdp import fully_shard

    for module in model.modules():
        if isinstance(module, EncoderLayer | DecoderLayer):
            fully_shard(module)
    fully_shard(model)


def local(tensor: Tensor) -> Tensor:
    """What this process has of it; the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """All of it; every process must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor divided as `like` is; each process has the whole, so nothing is sent."""
    if not isinstance(like, DTensor):
        return tensor
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def fill(model: nn.Module, divided: nn.Module) -> nn.Module:
    """A whole model with the weights of a divided one."""
    own = model.state_dict()
    for name, tensor in divided.state_dict().items():
        own[name].copy_(whole(tensor))
    return model


@torch.no_grad()
def load_into(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Whole tensors into a model that may be divided."""
    own = model.state_dict()
    if not any(isinstance(tensor, DTensor) for tensor in own.values()):
        model.load_state_dict(tensors)
        return
    if own.keys() != tensors.keys():
        raise RuntimeError("other tensors")
    for name, tensor in own.items():
        local(tensor).copy_(local(placed(tensors[name], tensor)))


def place_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors named optimiser.<number>.<name>, divided as their parameters are; counters stay."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    found = {}
    for key, tensor in tensors.items():
        parameter = parameters[int(key.split(".")[1])]
        found[key] = placed(tensor, parameter) if tensor.shape == parameter.shape else tensor
    return found
