"""Positions that turn q and k: q_i → R_i q_i, k_j → R_j k_j, so that q_iᵀk_j depends on j − i (RoFormer, Su 2021).

Shape letters: B batch, H heads, N tokens, K head dim.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from mirada.core.places import Places
from mirada.errors import MiradaError

Convention = Literal["interleaved", "half"]


def rotate(x: Tensor, cos: Tensor, sin: Tensor, convention: Convention) -> Tensor:
    """(a, b) → (a cos − b sin, a sin + b cos) for each pair of channels; cos and sin are (…, N, K/2).

    "interleaved" pairs channels (2m, 2m+1), as RoFormer writes it; "half" pairs (m, m + K/2), as GPT-NeoX and Llama do.
    The two differ by a permutation of channels: weights trained with one need that one.
    """
    if convention == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Rotary(nn.Module):
    """R_i = blockdiag of rotations by i·θ_m, θ_m = base^{−2m/K}, m = 0 … K/2 − 1.

    On a plane (axes=2) the first half of the channels turns with the row and the second with the column. `rotary_dim`
    below the head width leaves the remaining channels unturned.
    """

    def __init__(
        self,
        head_dim: int,
        axes: int = 1,
        base: float = 10_000.0,
        convention: Convention = "interleaved",
        rotary_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.rotary_dim = head_dim if rotary_dim is None else rotary_dim
        if self.rotary_dim % (2 * axes) or self.rotary_dim > head_dim:
            raise MiradaError(f"{self.rotary_dim} rotary channels of {head_dim}: must be a multiple of {2 * axes}")
        if convention not in ("interleaved", "half"):
            raise MiradaError(f"convention={convention!r}: must be 'interleaved' or 'half'")
        self.head_dim, self.axes, self.base, self.convention = head_dim, axes, base, convention

    def cos_sin(self, coords: Tensor) -> tuple[Tensor, Tensor]:
        """For coordinates (…, N) of one axis."""
        dim = self.rotary_dim // self.axes
        theta = self.base ** (-torch.arange(0, dim, 2, device=coords.device, dtype=torch.float64) / dim)
        angle = coords.to(torch.float64)[..., None] * theta
        return angle.cos(), angle.sin()

    def forward(self, x_BHNK: Tensor, places: Places) -> Tensor:
        places.must_be_of(x_BHNK.shape[-2])
        if x_BHNK.shape[-1] != self.head_dim:
            raise MiradaError(
                f"Rotary(head_dim={self.head_dim}) met heads of width {x_BHNK.shape[-1]}: give that width"
            )
        coords = places.coords_NA
        if coords.shape[-1] != self.axes:
            raise MiradaError(f"rotary positions with axes={self.axes} met places with {coords.shape[-1]} axes")
        extra, placed = x_BHNK.split([places.num_extra, x_BHNK.shape[-2] - places.num_extra], dim=-2)
        turned, rest = placed.split([self.rotary_dim, placed.shape[-1] - self.rotary_dim], dim=-1)
        parts = []
        for axis, share in enumerate(turned.chunk(self.axes, dim=-1)):
            cos, sin = (t.to(x_BHNK.dtype) for t in self.cos_sin(coords[..., axis]))
            parts.append(rotate(share, cos, sin, self.convention))
        return torch.cat([extra, torch.cat([*parts, rest], dim=-1)], dim=-2)
