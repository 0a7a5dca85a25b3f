"""Spatioformer, our default for maps: a place looks around itself, and then at the plots that are like it.

    z(x)  = tower(bands around x, covariates of x, where x is)
    ŷ(x)  = Σ_j α_j y_j,   α = softmax_j(−eᵗ ‖z(x) − z(x_j)‖)        j: the plots whose y_j is known
    σ²(x) = Σ_j α_j y_j² − ŷ²

In training a plot may not look at plots near by (`neighbours`), so what is learned is how to look far: a
prediction where nobody has been is what a map is made of. No ŷ leaves the range of what was observed, and the weights α
say which plots it rests on. A learned line, which starts as the identity, makes of ŷ and log σ² what the task asks for.
`members` towers, trained side by side on one loss, are an ensemble.

All pixels of a raster share the work of the tower: its attention is local, pixel to pixels within a radius, so the
output of a pixel is that of the chip around it. The published Spatioformer is `spatioformer_paper`.

Shape letters: B batch, L layers (bands, covariates, longitude, latitude), D dim, M members, H heads, K head dim,
N places, P known plots, T outputs; h w: height and width of what is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from mirada.core import (
    Attend,
    Distance,
    Located,
    Neighbours,
    PaperWaves,
    Sphere,
    Waves,
)
from mirada.nn.around import LookAround
from mirada.nn.mlp import MLP
from mirada.nn.residual import pre_norm
from mirada.nn.windows_of_layers import halo_of, require_chips
from mirada.systems.registry import Card, one_of, register

PLOTS_AT_ONCE = 128  # whose chips are looked at, to be kept
SMALLEST_VARIANCE = 1e-2  # of standardised targets
SHARPNESS = 2.5  # at first a place sees a few dozen plots; from all of them it takes long to learn to choose


class Tower(nn.Module):
    """z = what a place is like: its bands after looking around, plus its covariates, plus where it is, then an MLP."""

    def __init__(
        self,
        in_channels: int,
        num_covariates: int,
        radii: Sequence[int],
        dim: int,
        num_heads: int,
        location: nn.Module | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.in_channels, self.num_covariates, self.halo = in_channels, num_covariates, sum(radii)
        self.bands = nn.Linear(in_channels, dim) if in_channels else None
        self.around = nn.ModuleList(LookAround(dim, num_heads, r, dropout) for r in radii if in_channels)
        self.norm = nn.LayerNorm(dim) if in_channels else None
        self.covariates = nn.Linear(num_covariates, dim) if num_covariates else None
        self.location = location
        self.mlp = pre_norm(lambda: nn.LayerNorm(dim))(MLP(dim, 2 * dim, dropout=dropout))
        self.dim = dim

    def forward(self, layers_BLHW: Tensor) -> Tensor:
        """(B, L, H, W) → (B, h, w, D), h = H − 2 halo: every place with all it looks at inside."""
        layers_BHWL = layers_BLHW.permute(0, 2, 3, 1)
        inner_BhwL = layers_BHWL[:, self.halo : layers_BHWL.shape[1] - self.halo]
        inner_BhwL = inner_BhwL[:, :, self.halo : layers_BHWL.shape[2] - self.halo]
        x_BhwD = layers_BLHW.new_zeros(*inner_BhwL.shape[:3], self.dim)
        if self.bands is not None:
            x_BhwD = x_BhwD + self._seen(layers_BHWL[..., : self.in_channels])
        if self.covariates is not None:  # those of the middle: a chip has one value of each
            known = inner_BhwL[..., self.in_channels : self.in_channels + self.num_covariates]
            x_BhwD = x_BhwD + self.covariates(known.nan_to_num(0.0, 0.0, 0.0))
        if self.location is not None:
            x_BhwD = self.location(x_BhwD, inner_BhwL[..., -2:])
        return self.mlp(x_BhwD)

    def _seen(self, bands_BHWC: Tensor) -> Tensor:
        """Bands of the pixels inside, after they looked around; pixels without data are seen by nobody."""
        assert self.bands is not None and self.norm is not None
        valid_BHW = bands_BHWC.isfinite().all(-1)
        x_BHWD = self.bands(bands_BHWC.nan_to_num(0.0, 0.0, 0.0))
        for layer in self.around:
            assert isinstance(layer, LookAround)
            x_BHWD, valid_BHW = layer(x_BHWD, valid_BHW), layer.inner(valid_BHW)
        return self.norm(x_BHWD)


def _head(num_outputs: int) -> nn.Linear:
    """From the mean and the logarithm of the variance to what else is said of a place: at first the latter."""
    head = nn.Linear(2, num_outputs)
    nn.init.zeros_(head.bias)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([0.0, 1.0]))
    return head


@register(
    Card(
        name="spatioformer",
        title="Spatioformer",
        summary="A place looks around itself, then at the plots that are like it, in training not at those near by.",
        paper="Guo 2025 (location in attention), Ye 2025 (ModernNCA: distances to what is known); the whole is ours",
        inputs="plots",
        parts={
            "score": "scaled dot around a place; distance to plots",
            "neighbours": "grid around a place; plots that are not near by",
            "position": "bias table around a place; sphere, waves in km, or the paper's",
            "heads": "concatenated around a place; one to plots, in each member",
        },
        sizes={"small": {"dim": 32, "num_heads": 4}, "large": {"dim": 64, "num_heads": 8}},
        default_size="small",
        when_to_use="Numbers measured at places: a map, with what it rests on and how sure it is.",
        cannot={"accepts_another_size_at_inference": "a chip has the size that the layers look around in"},
        tiny={"dim": 8, "depth": 1, "num_heads": 2, "members": 2, "dropout": 0.0},
        learning_rate=1e-2,
    )
)
class Spatioformer(nn.Module):
    """Chips of `chip_size`² pixels (1: points without rasters) of layers: bands, covariates, longitude, latitude.

    `num_plots` is how many plots it keeps to look at. `center` (longitude, latitude) and `extent_km` say where the
    data is and how wide, `wavelengths_km` how fine location="waves" can be.
    """

    def __init__(
        self,
        in_channels: int,
        num_covariates: int,
        num_plots: int,
        chip_size: int = 9,
        num_outputs: int = 2,
        *,
        dim: int = 32,
        depth: int = 1,
        num_heads: int = 4,
        members: int = 4,
        location: str = "sphere",
        center: tuple[float, float] = (0.0, 0.0),
        extent_km: float = 1000.0,
        wavelengths_km: tuple[float, ...] = (1000.0, 4000.0),
        dropout: float = 0.1,
        coordinate_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        encoders: dict[str, Callable[[], Sphere | Waves | PaperWaves | None]] = {
            "sphere": lambda: Sphere(center, extent_km),
            "waves": lambda: Waves(wavelengths_km),
            "paper": PaperWaves,
            "none": lambda: None,
        }
        encoder = one_of("location", location, encoders)
        self.halo, self.chip_size = halo_of(chip_size), chip_size
        self.num_layers = in_channels + num_covariates + 2
        radii = [len(part) for part in torch.arange(self.halo).tensor_split(depth) if len(part)]

        def located() -> Located | None:
            found = encoder()
            return None if found is None else Located(dim, found, coordinate_dropout)

        self.towers = nn.ModuleList(
            Tower(in_channels, num_covariates, radii, dim, num_heads, located(), dropout) for _ in range(members)
        )
        self.attend = Attend(Distance(sharpness=SHARPNESS))
        self.head = _head(num_outputs - 1) if num_outputs > 1 else None
        self.keys_MPD: Tensor
        self.known_P: Tensor
        self.register_buffer("keys_MPD", torch.zeros(members, num_plots, dim))
        self.register_buffer("known_P", torch.zeros(num_plots))

    def forward(self, layers_BLHW: Tensor) -> Tensor:
        """(B, L, k, k) chips → (B, M, T)."""
        require_chips(layers_BLHW, self.num_layers, self.chip_size)
        return self.look(self.embed(layers_BLHW).flatten(1, 3), self.keys_MPD, self.known_P)

    def dense(self, layers_BLHW: Tensor) -> Tensor:
        """(B, M, T, h, w): the output for every pixel whose chip lies inside."""
        z_MBhwD = self.embed(layers_BLHW)
        outputs = self.look(z_MBhwD.flatten(1, 3), self.keys_MPD, self.known_P)
        return outputs.unflatten(0, z_MBhwD.shape[1:4]).permute(0, 3, 4, 1, 2)

    def embed(self, layers_BLHW: Tensor) -> Tensor:
        """(M, B, h, w, D): z of every place, by every member."""
        return torch.stack([tower(layers_BLHW) for tower in self.towers])

    def look(self, z_MND: Tensor, keys_MPD: Tensor, known_P: Tensor, neighbours: Neighbours | None = None) -> Tensor:
        """(N, M, T) from what is known of the plots that a place may look at."""
        q_M1ND, k_M1PD = z_MND[:, None], keys_MPD[:, None]
        is_known_P = known_P.isfinite()
        valid_MP = None if is_known_P.all() else is_known_P.expand(len(keys_MPD), -1)
        y_P = known_P.nan_to_num()
        v_P2 = torch.stack([y_P, y_P.square()], dim=-1)
        v_M1P2 = v_P2.expand(len(keys_MPD), 1, -1, -1)
        seen_M1N2 = self.attend(q_M1ND, k_M1PD, v_M1P2, valid_BM=valid_MP, neighbours=neighbours)
        mean, square = seen_M1N2[:, 0].unbind(-1)
        if self.head is None:
            return mean.T[..., None]
        log_variance = (square - mean.square()).clamp(min=SMALLEST_VARIANCE).log()
        others = self.head(torch.stack([mean, log_variance], dim=-1))
        return torch.cat([mean[..., None], others], dim=-1).transpose(0, 1)

    @torch.no_grad()
    def remember(self, layers_PLHW: Tensor, known_P: Tensor) -> None:
        """Keep these plots to look at: their z, and their standardised targets, NaN of plots not to be seen."""
        chunks = [self.embed(some).flatten(1, 3) for some in layers_PLHW.split(PLOTS_AT_ONCE)]
        self.keys_MPD.copy_(torch.cat(chunks, dim=1))
        self.known_P.copy_(known_P)
