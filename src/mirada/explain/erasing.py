"""What stands in the place of a patch that is taken away. The result depends on it, so it is always named.

    blur    the image under a Gaussian, Σ_j exp(−(i−j)²/2σ²) x_j / Σ_j exp(−(i−j)²/2σ²) along both sides, σ = a patch
    black   what a black pixel is for the model, that is, after normalisation
    mean    the mean colour of the training images, which is 0 after normalisation

Shape letters: B batch, C channels, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from mirada.errors import MiradaError

Baseline = Literal["blur", "black", "mean"]


def erased(
    images_BCHW: Tensor, baseline: Baseline, *, sigma: tuple[float, float], black_C: Sequence[float] | None = None
) -> Tensor:
    """The images with nothing left of them, (B, C, H, W). `sigma` is that of rows and of columns, in pixels."""
    if baseline == "blur":
        return blurred(images_BCHW, sigma)
    if baseline == "mean":
        return torch.zeros_like(images_BCHW)
    if baseline != "black":
        raise MiradaError(f"baseline={baseline!r}: must be one of {', '.join(map(repr, get_args(Baseline)))}")
    channels = images_BCHW.shape[1]
    if black_C is None or len(black_C) != channels:
        given = "nothing" if black_C is None else f"{len(black_C)} numbers"
        raise MiradaError(
            f"baseline='black' on images of {channels} channels is given {given} as black_C: "
            "expected what a black pixel is after normalisation, (0 − mean) / std of each channel"
        )
    colour_C11 = torch.as_tensor(black_C, dtype=images_BCHW.dtype, device=images_BCHW.device)[:, None, None]
    return colour_C11.expand_as(images_BCHW)


def blurred(images_BCHW: Tensor, sigma: tuple[float, float]) -> Tensor:
    """At the edges the mean is over the pixels that there are."""
    size = images_BCHW.shape[-2:]
    rows_HH, columns_WW = (_gaussian(length, width) for length, width in zip(size, sigma, strict=True))
    return rows_HH.to(images_BCHW) @ images_BCHW @ columns_WW.to(images_BCHW).mT


def _gaussian(length: int, sigma: float) -> Tensor:
    if not sigma > 0:
        raise MiradaError(f"a blur of σ = {sigma:g} pixels: must be above 0")
    place_L = torch.arange(length, dtype=torch.float64)
    weights_LL = (-((place_L[:, None] - place_L) ** 2) / (2 * sigma**2)).exp()
    return weights_LL / weights_LL.sum(1, keepdim=True)
