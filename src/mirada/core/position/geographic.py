"""Where on Earth a token is, from its longitude and latitude in degrees.

Shape letters: B batch, N tokens, D model dim; the last axis of `lonlat` is (longitude, latitude).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

EARTH_KM = 6371.0


class Geographic(nn.Module):
    """x_i + λ g(lon_i, lat_i) (Spatioformer, Guo 2025): even k sine, odd k cosine,

        g_k = [sin(lon / w_k) + sin(lat / v_k)] / 2,   w_k = c^{k/D},  v_k = c^{(D−k−1)/D}

    with coordinates in degrees. λ is learned; the paper starts it at 10,000 because its input is raw reflectance.
    """

    def __init__(self, dim: int, base: float = 100.0, strength: float = 1.0) -> None:
        super().__init__()
        self.dim, self.base = dim, base
        self.strength = nn.Parameter(torch.tensor(float(strength)))

    def table(self, lonlat_N2: Tensor) -> Tensor:
        return paper_waves(lonlat_N2, self.dim, self.base)

    def forward(self, x_BND: Tensor, lonlat_BN2: Tensor) -> Tensor:
        return x_BND + self.strength * self.table(lonlat_BN2).to(x_BND.dtype)


def paper_waves(lonlat_N2: Tensor, dim: int, base: float) -> Tensor:
    """g of `Geographic`, computed in double precision."""
    k = torch.arange(dim, device=lonlat_N2.device, dtype=torch.float64)
    lonlat = lonlat_N2.to(torch.float64)
    lon = lonlat[..., :1] / base ** (k / dim)
    lat = lonlat[..., 1:] / base ** ((dim - k - 1) / dim)
    sines, cosines = (lon.sin() + lat.sin()) / 2, (lon.cos() + lat.cos()) / 2
    return torch.where(k % 2 == 0, sines, cosines).to(lonlat_N2.dtype)


class PaperWaves(nn.Module):
    """φ(place) = g(lon, lat) of `Geographic`, for comparison: its finest wave is 6.3°, and 180° E and W are apart."""

    def __init__(self, num_features: int = 16, base: float = 100.0) -> None:
        super().__init__()
        self.num_features, self.base = num_features, base

    def forward(self, lonlat_N2: Tensor) -> Tensor:
        return paper_waves(lonlat_N2, self.num_features, self.base)


class Sphere(nn.Module):
    """φ(place) = (u − u₀) · R / s: the point u of the unit sphere, seen from the centre u₀ of the data in its extent s.

    Without a seam at the antimeridian and without a pole, and of magnitude one on a plot of land as on a continent.
    """

    num_features = 3

    def __init__(self, center: tuple[float, float] = (0.0, 0.0), extent_km: float = EARTH_KM) -> None:
        super().__init__()
        self.center, self.extent_km = center, extent_km

    def forward(self, lonlat_N2: Tensor) -> Tensor:
        center = torch.tensor(self.center, dtype=torch.float64, device=lonlat_N2.device)
        offset = on_unit_sphere(lonlat_N2.double()) - on_unit_sphere(center)
        return (offset * (EARTH_KM / self.extent_km)).float()


class Waves(nn.Module):
    """φ(place) = [sin(2π R u / w), cos(2π R u / w)] for wavelengths w in km: Fourier features on the sphere.

    The shorter the waves, the better a model remembers where it has been and the worse it guesses elsewhere.
    """

    def __init__(self, wavelengths_km: Sequence[float]) -> None:
        super().__init__()
        self.wavelengths_km = tuple(float(length) for length in wavelengths_km)
        self.num_features = 6 * len(self.wavelengths_km)

    def forward(self, lonlat_N2: Tensor) -> Tensor:
        u = on_unit_sphere(lonlat_N2.double())
        angles = torch.cat([u * (2 * math.pi * EARTH_KM / length) for length in self.wavelengths_km], dim=-1)
        return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


class Located(nn.Module):
    """x_i + λ W φ(place_i), with a learned strength λ that starts at one: as strong as tokens of magnitude one.

    In training the place of a sample is hidden with probability `dropout`, so that nothing relies on it alone.
    """

    def __init__(self, dim: int, encoder: Sphere | Waves | PaperWaves, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.project = nn.Linear(encoder.num_features, dim)
        self.strength = nn.Parameter(torch.ones(()))
        self.dropout = dropout

    def forward(self, x_BND: Tensor, lonlat_BN2: Tensor) -> Tensor:
        place = self.strength * self.project(self.encoder(lonlat_BN2).to(x_BND.dtype))
        if self.training and self.dropout:
            place = place * (torch.rand(len(place), *(1,) * (place.ndim - 1), device=place.device) >= self.dropout)
        return x_BND + place


def on_unit_sphere(lonlat_N2: Tensor) -> Tensor:
    """(cos φ cos λ, cos φ sin λ, sin φ)"""
    lon, lat = torch.deg2rad(lonlat_N2).unbind(-1)
    return torch.stack([lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()], dim=-1)
