"""Does a map depend on what the model has learned? Its weights are shuffled, and the map should change.

    ρ = Spearman's rank correlation of the map before and after; near 0 is what to hope for (Adebayo 2018)

A method whose map stays the same with weights that know nothing draws edges or the middle of the image, not what the
model does. The values of every parameter are shuffled among themselves: nothing learned is left, and their scale stays,
so that signals neither vanish nor explode. The model that is given is never changed.

Shape letters: B batch, S stages, N cells of a map.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError

MakeMap = Callable[[nn.Module], Tensor]  # of a model, the maps (B, …) of always the same images and classes
EVERYTHING = "all"


@dataclass(frozen=True)
class Sanity:
    """ρ of each image after each stage, with the names of what was shuffled in it."""

    stages: tuple[str, ...]
    correlation_SB: Tensor

    @property
    def final_B(self) -> Tensor:
        """With all weights shuffled."""
        return self.correlation_SB[-1]


def sanity(make_map: MakeMap, model: nn.Module, *, seed: int = 0) -> Sanity:
    """All weights at once."""
    before, shuffled = make_map(model), copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    for _, parameters in stages(shuffled):
        shuffle(parameters, generator)
    return Sanity((EVERYTHING,), rank_correlation(before, make_map(shuffled))[None])


def cascading_sanity(make_map: MakeMap, model: nn.Module, *, seed: int = 0) -> Sanity:
    """From the head to the input, one stage more each time: where does the map begin to change?"""
    before, shuffled = make_map(model), copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    names, correlations = [], []
    for name, parameters in stages(shuffled):
        shuffle(parameters, generator)
        names.append(name)
        correlations.append(rank_correlation(before, make_map(shuffled)))
    return Sanity(tuple(names), torch.stack(correlations))


def stages(model: nn.Module) -> list[tuple[str, list[nn.Parameter]]]:
    """The parts of a model with their own parameters, from the last registered (the head) to the first.

    Lists and sequences of layers, and what holds such a list, are taken apart, so that a layer is a stage; parameters
    that belong to none of the parts (a class token, say) come last.
    """
    found = [(name, list(part.parameters())) for name, part in _parts(model)]
    taken = {parameter for _, parameters in found for parameter in parameters}
    rest = [parameter for parameter in model.parameters() if parameter not in taken]
    found = [(name, parameters) for name, parameters in reversed(found) if parameters]
    if rest:
        found.append(("other parameters", rest))
    if not found:
        raise MiradaError(f"{type(model).__name__} has no parameters: there is nothing to shuffle")
    return found


def shuffle(parameters: list[nn.Parameter], generator: torch.Generator) -> None:
    """The values of each tensor, in place, in another order."""
    with torch.no_grad():
        for parameter in parameters:
            order_N = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
            parameter.copy_(parameter.flatten()[order_N].view_as(parameter))


def rank_correlation(one: Tensor, other: Tensor) -> Tensor:
    """(B,) Spearman's ρ of maps (B, …); equal values share their mean rank, and a constant map correlates 0."""
    if one.shape != other.shape or one.ndim < 2:
        shapes = f"{tuple(one.shape)} and {tuple(other.shape)}"
        raise MiradaError(f"maps of shapes {shapes} cannot be compared: expected (images, …) of the same shape")
    a_BN, b_BN = (_centred_ranks(maps.detach().flatten(1)) for maps in (one, other))
    scale_B = (a_BN.square().sum(1) * b_BN.square().sum(1)).sqrt()
    return torch.where(scale_B > 0, (a_BN * b_BN).sum(1) / scale_B.where(scale_B > 0, 1.0), 0.0).float()


def _centred_ranks(values_BN: Tensor) -> Tensor:
    sorted_BN = values_BN.sort(dim=1).values
    below_BN, not_above_BN = (torch.searchsorted(sorted_BN, values_BN.contiguous(), right=r) for r in (False, True))
    return (below_BN + not_above_BN - values_BN.shape[1]).double() / 2


def _parts(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    for name, child in module.named_children():
        is_row = isinstance(child, nn.ModuleList | nn.Sequential)
        if is_row or any(isinstance(part, nn.ModuleList) for part in child.modules()):
            yield from _parts(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", child
