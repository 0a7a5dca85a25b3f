"""C13: places on Earth, from the paper's waves to those without a seam."""

from __future__ import annotations

import math

import pytest
import torch

from mirada.core import Geographic, Located, PaperWaves, Sphere, Waves
from mirada.core.position.geographic import EARTH_KM, on_unit_sphere

B, N, D = 3, 5, 14
GRID = [(lon, lat) for lon in (-180.0, -58.4, 0.0, 12.5, 149.1, 180.0) for lat in (-90.0, -34.6, 0.0, 51.5, 90.0)]
LONLAT = torch.tensor(GRID, dtype=torch.float64)
WELLINGTON = (174.78, -41.29)
SEAM = torch.tensor([[180 - 1e-4, lat] for _, lat in GRID]), torch.tensor([[1e-4 - 180, lat] for _, lat in GRID])
NO_SEAM = {
    "sphere": lambda: Sphere(WELLINGTON, 500),
    "waves": lambda: Waves((300, 4000)),
}


def unit(lon: float, lat: float) -> tuple[float, float, float]:
    lon, lat = math.radians(lon), math.radians(lat)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


# --- as the formulas say, on a grid of coordinates ---


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_C13_geographic_golden_values(dtype):
    dim, base = 16, 100.0
    expected = []
    for lon, lat in LONLAT.to(dtype).tolist():
        row = []
        for k in range(dim):
            turn = math.sin if k % 2 == 0 else math.cos
            row.append((turn(lon / base ** (k / dim)) + turn(lat / base ** ((dim - k - 1) / dim))) / 2)
        expected.append(row)
    expected = torch.tensor(expected, dtype=dtype)
    torch.testing.assert_close(Geographic(dim, base).table(LONLAT.to(dtype)), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(PaperWaves(dim, base)(LONLAT.to(dtype)), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("center", "extent_km"), [((0.0, 0.0), EARTH_KM), (WELLINGTON, 5000.0)])
def test_sphere_golden_values(center, extent_km):
    u_0 = unit(*center)
    expected = [[(u - o) * 6371.0 / extent_km for u, o in zip(unit(*place), u_0, strict=True)] for place in GRID]
    torch.testing.assert_close(Sphere(center, extent_km)(LONLAT), torch.tensor(expected), atol=1e-6, rtol=0)


def test_waves_golden_values():
    wavelengths = (700.0, 4000.0, 20_000.0)
    expected = []
    for place in GRID:
        angles = [2 * math.pi * 6371.0 * x / length for length in wavelengths for x in unit(*place)]
        expected.append([*map(math.sin, angles), *map(math.cos, angles)])
    waves = Waves(wavelengths)
    assert waves.num_features == 18
    torch.testing.assert_close(waves(LONLAT), torch.tensor(expected), atol=1e-6, rtol=0)


# --- magnitudes and seams ---


def test_C13_geographic_is_bounded_before_its_strength():
    lonlat = torch.rand(B, 997, 2) * torch.tensor([360, 180]) - torch.tensor([180, 90])
    part = Geographic(D, strength=10_000)
    assert part.table(lonlat).abs().max() <= 1
    x = torch.randn(B, 997, D)
    torch.testing.assert_close(part(x, lonlat), x + 10_000 * part.table(lonlat))
    part(x, lonlat).sum().backward()
    assert part.strength.grad.abs() > 0


@pytest.mark.parametrize("extent_km", [1.0, 100.0, 3000.0])
def test_sphere_is_of_magnitude_one_on_a_farm_as_on_a_continent(extent_km):
    """Its unit is the extent: a place so far from the centre is at distance one."""
    degrees = math.degrees(extent_km / EARTH_KM)
    north = torch.tensor([WELLINGTON[0], WELLINGTON[1] + degrees], dtype=torch.float64)
    assert Sphere(WELLINGTON, extent_km)(north).norm().item() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", NO_SEAM)
def test_no_seam_at_the_antimeridian(name):
    """22 m apart at the equator."""
    east, west = SEAM
    assert (NO_SEAM[name]()(east) - NO_SEAM[name]()(west)).abs().max() < 1e-3


def test_C13_the_papers_waves_jump_at_the_antimeridian():
    east, west = (PaperWaves()(side) for side in SEAM)
    jump = (east - west).abs()
    assert jump.max().item() == pytest.approx(0.80, abs=0.005)
    assert jump[:, 0].min().item() == pytest.approx(0.80, abs=0.005)  # sin(180) at every latitude


@pytest.mark.parametrize("name", NO_SEAM)
def test_every_longitude_of_a_pole_is_one_place(name):
    poles = torch.tensor([[lon, 90.0] for lon in (-180.0, -77.0, 0.0, 143.0)])
    found = NO_SEAM[name]()(poles)
    torch.testing.assert_close(found, found[:1].expand_as(found), atol=1e-5, rtol=0)


def test_waves_return_after_their_wavelength_in_km():
    """Eastwards from (0°, 0°) the y axis is R sin(lon) km away."""
    length = 500.0
    steps_km = torch.tensor([0.0, 250.0, 500.0, 1000.0], dtype=torch.float64)
    lon = torch.rad2deg((steps_km / EARTH_KM).asin())
    y = Waves((length,))(torch.stack([lon, torch.zeros_like(lon)], dim=-1))[:, [1, 4]]
    torch.testing.assert_close(y, torch.tensor([[0.0, 1.0], [0.0, -1.0], [0.0, 1.0], [0.0, 1.0]]), atol=1e-6, rtol=0)


def test_chords_are_distances_in_km():
    """Wellington to Auckland is 494 km."""
    places = torch.tensor([WELLINGTON, (174.76, -36.85)], dtype=torch.float64)
    one, other = on_unit_sphere(places)
    assert (one - other).norm().item() * EARTH_KM == pytest.approx(494, abs=1)


# --- Located ---


def test_located_adds_a_projection_of_the_place():
    encoder = Sphere(WELLINGTON, 500)
    located = Located(D, encoder)
    x, lonlat = torch.randn(B, N, D), torch.tensor(WELLINGTON) + torch.randn(B, N, 2)
    assert located.strength == 1
    torch.testing.assert_close(located(x, lonlat), x + located.project(encoder(lonlat)))
    with torch.no_grad():
        located.strength.fill_(0.3)
    torch.testing.assert_close(located(x, lonlat), x + 0.3 * located.project(encoder(lonlat)))
    located(x, lonlat).square().sum().backward()
    assert all(parameter.grad.any() for parameter in located.parameters())


@pytest.mark.parametrize("encoder", [Sphere(WELLINGTON, 500), Waves((500, 3000)), PaperWaves()], ids=repr)
def test_located_is_about_as_strong_as_tokens_of_magnitude_one(encoder):
    lonlat = torch.tensor(WELLINGTON) + 3 * torch.randn(B, 997, 2)
    with torch.no_grad():
        added = Located(32, encoder)(torch.zeros(B, 997, 32), lonlat)
    assert 0.1 < added.std() < 2


def test_located_hides_the_place_of_whole_samples_in_training():
    located = Located(D, Sphere(WELLINGTON, 500), dropout=0.25)
    x, lonlat = torch.randn(997, 2, 3, D), torch.tensor(WELLINGTON) + torch.randn(997, 2, 3, 2)
    shown = located.eval()(x, lonlat)
    assert not torch.equal(shown, x)
    found = located.train()(x, lonlat)
    is_hidden_B = (found == x).flatten(1).all(1)
    assert is_hidden_B.float().mean().item() == pytest.approx(0.25, abs=0.05)
    torch.testing.assert_close(found[~is_hidden_B], shown[~is_hidden_B])


def test_located_shows_every_place_without_dropout():
    located = Located(D, Sphere(WELLINGTON, 500))
    x, lonlat = torch.randn(B, N, D), torch.tensor(WELLINGTON) + torch.randn(B, N, 2)
    assert torch.equal(located.train()(x, lonlat), located.eval()(x, lonlat))
