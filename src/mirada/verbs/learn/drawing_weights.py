"""Weights and word vectors that depend on a seed alone, whoever else draws random numbers in this process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mirada.core import BiasTable, Learned, RandomFeatures


def generator(seed: int, what: str = "") -> torch.Generator:
    digest = hashlib.blake2b(f"{seed}:{what}".encode(), digest_size=7).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))


def word_vectors(tokens: Sequence[str], dim: int, seed: int) -> Tensor:
    """(N, D): equal words have equal vectors, in every sentence."""
    return torch.stack([torch.randn(dim, generator=generator(seed, word)) for word in tokens])


@torch.no_grad()
def draw_weights(model: nn.Module, seed: int) -> None:
    """Matrices as Glorot (2010) draws them; tables of positions of size one, as if they had been trained to matter.

    Vectors stay as the parts start them. The parts draw from the generator that the whole process shares, so that what
    they draw is replaced here.
    """
    for name, module in model.named_modules():
        own = generator(seed, name)
        if isinstance(module, RandomFeatures):
            module.weight.copy_(_orthogonal(module.weight, own))
            continue
        for parameter in module.parameters(recurse=False):
            if parameter.ndim > 1:
                fan_out, fan_in = parameter.shape[-2:] if parameter.ndim < 4 else parameter.shape[:2]
                std = 0.7 if isinstance(module, Learned | BiasTable) else (2 / (fan_in + fan_out)) ** 0.5
                parameter.copy_(std * torch.randn(parameter.shape, generator=own))


def _orthogonal(weight_ZK: Tensor, own: torch.Generator) -> Tensor:
    """Blocks of K orthogonal rows of length √K."""
    num_rows, width = weight_ZK.shape
    blocks = [
        torch.linalg.qr(torch.randn(width, width, generator=own))[0].T[: num_rows - at]
        for at in range(0, num_rows, width)
    ]
    return torch.cat(blocks) * width**0.5
