"""A model that looks at known plots, and the plots it looks at.

    training     each plot of a batch looks at some others, none of them nearer than a distance drawn for it
    evaluation   every place looks at the plots that were kept

The distance is drawn between nothing and `blind_km`: the model learns to do with what is far, because where a map is
wanted nobody may have been near. Shape letters: B batch, P plots that may be looked at, L layers, H and W pixels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import Mask
from mirada.core.position.geographic import EARTH_KM, on_unit_sphere
from mirada.systems import Spatioformer


class AmongPlots(nn.Module):
    """chips ↦ model(chips, known plots). Its state is that of the model, which keeps the plots to look at by itself."""

    def __init__(
        self,
        model: Spatioformer,
        layers_PLHW: Tensor,
        known_P: Tensor,
        *,
        learned_P: Tensor,
        kept: Tensor,
        seen: int,
        blind_km: float,
    ) -> None:
        """Of the known plots `learned_P` (booleans) are trained on, and those numbered `kept` may be kept."""
        super().__init__()
        self.model, self.seen, self.blind_km = model, seen, blind_km
        self.layers_PLHW: Tensor
        self.known_P: Tensor
        self.learned_P: Tensor
        self.kept: Tensor
        held = {"layers_PLHW": layers_PLHW, "known_P": known_P, "learned_P": learned_P, "kept": kept}
        for name, tensor in held.items():
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, layers_BLHW: Tensor) -> Tensor:
        if not self.training:
            return self.model(layers_BLHW)
        learned = self.learned_P.nonzero()[:, 0]
        drawn = learned[torch.randperm(len(learned), device=learned.device)[: self.seen]]
        others_PLHW = self.layers_PLHW[drawn]
        blind_B1 = torch.rand(len(layers_BLHW), 1, device=layers_BLHW.device) * self.blind_km
        far_BP = distances_km(layers_BLHW, others_PLHW) > blind_B1
        z = self.model.embed(torch.cat([layers_BLHW, others_PLHW])).flatten(1, 3)
        asking, answering = z.split([len(layers_BLHW), len(drawn)], dim=1)
        return self.model.look(asking, answering, self.known_P[drawn], Mask(far_BP))

    def remember_learned(self) -> None:
        """Let the model, as it is now, look at what it was trained on: the others are to judge it."""
        known_P = self.known_P.where(self.learned_P, torch.nan)
        self.model.remember(self.layers_PLHW[self.kept], known_P[self.kept])

    def remember_all(self) -> None:
        """When it is judged by others still, all that is known is there to look at."""
        self.model.remember(self.layers_PLHW[self.kept], self.known_P[self.kept])

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.load_state_dict(*args, **kwargs)


def distances_km(some_BLHW: Tensor, others_PLHW: Tensor) -> Tensor:
    """(B, P) along the surface, between the middles of chips; of one place to itself zero."""
    u_B3, u_P3 = (on_unit_sphere(_middle(layers)[:, -2:].double()) for layers in (some_BLHW, others_PLHW))
    chord_BP = torch.cdist(u_B3, u_P3, compute_mode="donot_use_mm_for_euclid_dist")
    return 2 * EARTH_KM * (chord_BP / 2).clamp(max=1).asin()


def _middle(layers_BLHW: Tensor) -> Tensor:
    height, width = layers_BLHW.shape[-2:]
    return layers_BLHW[:, :, height // 2, width // 2]
