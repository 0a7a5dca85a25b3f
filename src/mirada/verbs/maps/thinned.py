"""Monte-Carlo dropout whose draws do not depend on the tile (Gal & Ghahramani 2016).

    y_s(x) = f(x; m_s),   m_s ~ Bernoulli(1 − p) per channel and layer,   s = 1 … S

Masks that are drawn anew for every pixel would make a map depend on how it is cut. Here a draw is a network: each of
its dropout layers has one mask of channels, the same for all pixels, and the spread of the S networks is the
uncertainty. Dropout of attention weights has no channels and stays off; the plots that a model keeps to look at stay
as the whole network sees them.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from mirada.errors import MiradaError


class FixedDropout(nn.Module):
    """y = x ⊙ m / (1 − p), m a function of the seed and the number of channels."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__()
        self.rate, self.seed = rate, seed
        self.masks: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        channels = x.shape[-1]
        if channels not in self.masks:
            kept = torch.rand(channels, generator=torch.Generator().manual_seed(self.seed)) >= self.rate
            self.masks[channels] = kept / (1 - self.rate)
        return x * self.masks[channels].to(x)


def thinned_networks(model: nn.Module, samples: int) -> list[nn.Module]:
    """Copies of a model, each with masks of its own in place of dropout."""
    names = [name for name, part in model.named_modules() if isinstance(part, nn.Dropout) and part.p > 0]
    if samples < 2:
        raise MiradaError(f"samples is {samples}: a spread needs 2 draws or more, such as 20.")
    if not names:
        raise MiradaError(
            f"samples is {samples}, but the model has no dropout, so all draws would be the same; leave it out."
        )
    return [_thinned(model, names, draw) for draw in range(samples)]


def _thinned(model: nn.Module, names: list[str], draw: int) -> nn.Module:
    thinned = copy.deepcopy(model).eval()
    for number, name in enumerate(names):
        dropout = thinned.get_submodule(name)
        assert isinstance(dropout, nn.Dropout)
        thinned.set_submodule(name, FixedDropout(dropout.p, seed=draw * len(names) + number))
    return thinned
