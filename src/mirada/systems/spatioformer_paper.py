"""Spatioformer as published: the pixels of a chip are tokens, and each knows where on Earth it is (Guo 2025).

    x_i = √D · W b_i + λ g(lon_i, lat_i)        b_i: the bands of pixel i, as they are (raw reflectance)
    y   = W_2 W_1 [z_0 ‖ z_1 ‖ … ‖ z_N],  z = encoder(t, x_1, …, x_N)        t: one learned token

λ is learned but starts at 10,000, which suits raw reflectance: with standardised bands the image has no effect, and
nobody is told. The head is as wide as the chip, so another chip size needs another model. `spatioformer` is the system
without these traps.

Shape letters: B batch, L layers (bands, longitude, latitude), N pixels, D dim, T outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated, Geographic
from mirada.nn.dropout import Dropout
from mirada.nn.encoder import Encoder, EncoderLayer
from mirada.nn.mlp import MLP
from mirada.nn.residual import post_norm
from mirada.nn.windows_of_layers import halo_of, require_chips, windows_of
from mirada.systems.registry import Card, register

CHIPS_AT_ONCE = 16  # of a map: what the MLP makes of them stays in the cache, a third less time than with many


@register(
    Card(
        name="spatioformer_paper",
        title="Spatioformer, as published",
        summary="The pixels of a chip look at each other, with their longitude and latitude added as waves.",
        paper="Guo, Mokany, Levick, Yang, Moghadam: Spatioformer, IEEE TGRS 63, 2025, doi 10.1109/TGRS.2025.3534654",
        inputs="plots",
        parts={"score": "scaled dot", "neighbours": "full", "position": "geographic", "heads": "concatenated"},
        sizes={"9": {"chip_size": 9}, **{str(side): {"chip_size": side} for side in (1, 3, 5, 7)}},
        default_size="9",
        when_to_use="To repeat the paper on raw reflectance; for anything else take spatioformer.",
        cannot={
            "accepts_another_size_at_inference": "the head is as wide as the chip",
            "accepts_covariates": "tokens are pixels and hold bands only",
            "accepts_points_without_rasters": "tokens are pixels",
        },
        tiny={"dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 16, "head_dim": 16, "chip_size": 3, "dropout": 0.0},
        learning_rate=1e-3,
    )
)
class SpatioformerPaper(nn.Module):
    """Chips of `chip_size`² pixels with `in_channels` bands, then longitude and latitude; no covariates."""

    def __init__(
        self,
        in_channels: int,
        chip_size: int = 9,
        num_outputs: int = 1,
        *,
        dim: int = 16,
        depth: int = 3,
        num_heads: int = 8,
        mlp_dim: int = 1024,
        head_dim: int = 1024,
        dropout: float = 0.1,
        strength: float = 10_000.0,
    ) -> None:
        super().__init__()
        self.in_channels, self.chip_size, self.dim = in_channels, chip_size, dim
        self.halo = halo_of(chip_size)
        self.bands = nn.Linear(in_channels, dim)
        self.location = Geographic(dim, base=100.0, strength=strength)
        self.token = nn.Parameter(torch.ones(dim))
        self.encoder = Encoder(_layer(dim, num_heads, mlp_dim, dropout) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear((chip_size**2 + 1) * dim, head_dim), nn.Linear(head_dim, num_outputs))

    def forward(self, layers_BLHW: Tensor) -> Tensor:
        """(B, L, H, W) → (B, T). Nodata is zero, as the paper does not treat it."""
        require_chips(layers_BLHW, self.in_channels + 2, self.chip_size)
        x_BNL = layers_BLHW.flatten(2).mT
        bands_BNC, lonlat_BN2 = x_BNL[..., : self.in_channels].nan_to_num(), x_BNL[..., -2:]
        x_BND = self.location(self.bands(bands_BNC) * self.dim**0.5, lonlat_BN2)
        z_BND = self.encoder(torch.cat([self.token.expand(len(x_BND), 1, -1), x_BND], dim=1))
        return self.head(z_BND.flatten(1))

    def dense(self, layers_BLHW: Tensor) -> Tensor:
        """(B, T, H − 2h, W − 2h): the output for every pixel whose chip lies inside."""
        chips, (batch, height, width) = windows_of(layers_BLHW, self.chip_size)
        outputs = torch.cat([self(some) for some in chips.split(CHIPS_AT_ONCE)])
        return outputs.unflatten(0, (batch, height, width)).permute(0, 3, 1, 2)


def _layer(dim: int, num_heads: int, mlp_dim: int, dropout: float) -> EncoderLayer:
    attention = Attention(Concatenated(dim, num_heads), dropout=dropout)
    mlp = MLP(dim, mlp_dim, nn.ReLU(), dropout=dropout)
    return EncoderLayer(attention, mlp, post_norm(lambda: nn.LayerNorm(dim), lambda: Dropout(dropout)))
