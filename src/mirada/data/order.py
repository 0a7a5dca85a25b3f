"""The order of training images: a pure function of (seed, epoch), so that resuming needs no replay."""

from __future__ import annotations

import numpy as np
import torch

from mirada.errors import MiradaError

_ORDER = 0
_STEP = 1


def step_generator(seed: int, epoch: int, step: int) -> torch.Generator:
    """Random numbers for one batch, or for the group that begins with it; depends on nothing else."""
    return torch.Generator().manual_seed(_derive(seed, _STEP, epoch, step, 0))


def epoch_order(count: int, seed: int, epoch: int, weights: torch.Tensor | None = None) -> torch.Tensor:
    """A permutation of 0..count-1; with weights, `count` draws in which each row appears count·w/Σw times, rounded
    up or down (systematic sampling, which has less noise than independent draws)."""
    generator = torch.Generator().manual_seed(_derive(seed, _ORDER, epoch))
    shuffle = torch.randperm(count, generator=generator)
    if weights is None:
        return shuffle
    # Systematic sampling walks along the rows; shuffling them first keeps neighbours independent.
    ends = torch.cumsum(weights[shuffle].double(), 0)
    points = (torch.arange(count) + torch.rand((), generator=generator, dtype=torch.float64)) / count * ends[-1]
    drawn = torch.searchsorted(ends, points, right=True).clamp(max=count - 1)
    return shuffle[drawn][torch.randperm(count, generator=generator)]


def balanced_weights(targets: torch.Tensor) -> torch.Tensor:
    """(N,) weights that give every class the same share: 1 / images of the class (multi-label: of the rarest label)."""
    if targets.ndim == 1 and not targets.is_floating_point():
        return 1.0 / torch.bincount(targets)[targets].double()
    if not bool(((targets == 0) | (targets == 1)).all()):
        raise MiradaError("balanced sampling needs classes, and the target is a regression; turn it off.")
    rarity = (1.0 / targets.sum(0).double().clamp(min=1)) * targets
    unlabelled = 1.0 / max(1, len(targets))
    return rarity.amax(1).clamp(min=unlabelled)


def _derive(*numbers: int) -> int:
    """Well mixed 63-bit seed; neighbouring inputs give unrelated streams."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
