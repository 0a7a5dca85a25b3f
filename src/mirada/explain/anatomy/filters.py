"""What a model looks for in pixels: the filters of its first layer (Dosovitskiy 2020, fig. 7).

    W − mean(W) = U Σ Vᵀ,   W: D filters of C·p·p numbers;   component k: row k of Vᵀ, explained variance σ_k²/Σ σ²
    centroid_k = Σ_f |f| P_k(f) / Σ_f P_k(f),   P_k: power spectrum, |f| in cycles per pixel

Trained on natural images, the first components look like basis functions of low frequency. The test asks how likely a
variance-weighted mean centroid as low as the one found is if variances were dealt to components at random.

Shape letters: D filters, K components, C channels, h and w pixels of a filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.explain.anatomy.permutations import p_value
from mirada.nn import ConvPatches, LinearPatches, ShiftedPatches
from mirada.systems.image_gpt import ImageGPT
from mirada.systems.t2t_vit import T2TViT
from mirada.systems.vit_3d import ViT3D

NUM_PERMUTATIONS = 1999


@dataclass(frozen=True)
class Filters:
    """The filters as they are, the strongest first, and their principal components with what each explains.

    `p_low_first` is small where the components that explain most have low frequencies.
    """

    name: str
    are_patches: bool  # one filter bank for whole patches; else those of the first of several convolutions
    filters_DChw: np.ndarray
    components_KChw: np.ndarray
    variance_K: np.ndarray
    centroid_K: np.ndarray
    p_low_first: float


def filters_of(model: nn.Module, in_channels: int) -> Filters:
    """Raises a MiradaError that says why, where a model has no such filters."""
    name, weight_DChw, are_patches = first_filters(model, in_channels)
    weight_DChw = weight_DChw.detach().double().cpu()
    components, variance_K = principal_components(weight_DChw)
    centroid_K = spectral_centroid(components)
    order = weight_DChw.flatten(1).norm(dim=1).argsort(descending=True)
    return Filters(
        name,
        are_patches,
        weight_DChw[order].numpy(),
        components.numpy(),
        variance_K.numpy(),
        centroid_K.numpy(),
        low_frequencies_first(variance_K.numpy(), centroid_K.numpy()),
    )


def first_filters(model: nn.Module, in_channels: int) -> tuple[str, Tensor, bool]:
    """The name of the layer that sees the pixels, its weight (D, C, h, w), and whether it embeds whole patches."""
    kind = type(model).__name__
    if isinstance(model, ImageGPT):
        raise MiradaError("there are no filters: the tokens are colours, not patches")
    if isinstance(model, T2TViT):
        raise MiradaError("there are no filters: windows of pixels look at each other before they are projected")
    if isinstance(model, ViT3D):
        raise MiradaError("filters of boxes of slices have no flat picture")
    for name, part in model.named_modules():
        if isinstance(part, ShiftedPatches):
            raise MiradaError("filters of shifted patches act on five normed copies of the image, not on pixels")
        if isinstance(part, LinearPatches) and _sees_pixels(part.projection.weight, part.patch_size, in_channels):
            weight = part.projection.weight.unflatten(1, (in_channels, *part.patch_size))
            return f"{name}.projection", weight, True
        if isinstance(part, nn.Conv2d) and part.in_channels == in_channels and part.groups == 1:
            is_patch = isinstance(model.get_submodule(name.rpartition(".")[0]), ConvPatches)
            return name, part.weight, is_patch
    raise MiradaError(f"{kind} has no layer of filters that sees the pixels")


def principal_components(weight_DChw: Tensor) -> tuple[Tensor, Tensor]:
    """(K, C, h, w) components of length 1, and the share of the variance that each explains; the shares sum to 1."""
    flat_DX = weight_DChw.flatten(1)
    _, sigma_K, components_KX = torch.linalg.svd(flat_DX - flat_DX.mean(0), full_matrices=False)
    total = sigma_K.square().sum()
    if not total > 0:
        raise MiradaError("all filters of the first layer are the same, so they have no principal components")
    return components_KX.unflatten(1, weight_DChw.shape[1:]), sigma_K.square() / total


def spectral_centroid(tiles_KChw: Tensor) -> Tensor:
    """(K,) cycles per pixel: 0 for an even tile, at most √½, that of a chequerboard."""
    power_Khw = torch.fft.fft2(tiles_KChw).abs().square().sum(1)
    down_h, right_w = (torch.fft.fftfreq(side, dtype=power_Khw.dtype) for side in power_Khw.shape[1:])
    frequency_hw = (down_h[:, None].square() + right_w.square()).sqrt()
    return (power_Khw * frequency_hw).sum((1, 2)) / power_Khw.sum((1, 2))


def low_frequencies_first(variance_K: np.ndarray, centroid_K: np.ndarray) -> float:
    """p of a variance-weighted mean centroid as low as this one."""
    return p_value(lambda order: -float(variance_K[order] @ centroid_K), len(variance_K), NUM_PERMUTATIONS)


def _sees_pixels(weight: Tensor, patch_size: tuple[int, int], in_channels: int) -> bool:
    """Patches of a feature map are not of pixels."""
    return weight.shape[1] == in_channels * patch_size[0] * patch_size[1]
