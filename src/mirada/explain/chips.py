"""Which pixels around a place its predicted value rests on: a number for every pixel of a chip.

Bands are covered, or integrated from, the mean of the chip; where the place is, and what is known of it besides, stay.
A model of places has members and plots that it looks at side by side, which are no chain of layers: methods that follow
one are not defined for it.

Shape letters: B places, L layers (bands, covariates, longitude, latitude), H and W pixels, M members, T outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.cells import Cells
from mirada.explain.integrated_gradients import integrated_gradients
from mirada.explain.methods import Method, method_named
from mirada.explain.occlusion import occlusion
from mirada.explain.trace import require_eval

KNOWN = ("integrated_gradients", "occlusion")


@dataclass(frozen=True)
class ExplainedChips:
    relevance_BHW: Tensor
    method: Method


def explain_chips(
    model: nn.Module, layers_BLHW: Tensor, num_bands: int, *, method: str = "integrated_gradients"
) -> ExplainedChips:
    """The mean over members of the first output, which is the predicted value."""
    require_eval(model)
    known = method_named(method)
    if method not in KNOWN:
        raise MiradaError(f"{method} is not defined for chips of places: use {' or '.join(KNOWN)}")
    if not 0 < num_bands <= layers_BLHW.shape[1]:
        raise MiradaError(f"num_bands={num_bands}: these places have no rasters around them to explain")
    start_BLHW = layers_BLHW.clone()
    bands_BCHW = start_BLHW[:, :num_bands]
    start_BLHW[:, :num_bands] = bands_BCHW.nanmean((2, 3), keepdim=True).expand_as(bands_BCHW)

    with torch.no_grad():
        has_members = model(layers_BLHW[:1]).ndim == 3

    def value(layers_NLHW: Tensor, index_N: Tensor | None = None) -> Tensor:
        return model(layers_NLHW)[..., 0].flatten(1).mean(1) if has_members else model(layers_NLHW)[:, 0]

    # A pixel without data has nothing to cover.
    start_BLHW = torch.where(layers_BLHW.isnan(), layers_BLHW, start_BLHW)
    if method == "occlusion":
        height, width = layers_BLHW.shape[-2:]
        cells = Cells((height, width), height, width, 1, 1)
        return ExplainedChips(occlusion(value, layers_BLHW, start_BLHW, cells), known)
    found_BLHW = integrated_gradients(value, layers_BLHW, start_BLHW)
    return ExplainedChips(found_BLHW[:, :num_bands].nan_to_num(0.0).sum(1), known)
