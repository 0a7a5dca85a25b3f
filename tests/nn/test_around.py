"""Pixels that look around: by all pairs and by tiles, the same numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mirada.nn import around
from mirada.nn.around import LookAround

B, H, W, D, HEADS, RADIUS = 3, 11, 13, 6, 2, 2


@pytest.fixture
def layer() -> LookAround:
    torch.manual_seed(3)
    return LookAround(D, HEADS, RADIUS).double()


def pixels() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(B, H, W, D, generator=generator, dtype=torch.float64)
    return x, torch.rand(B, H, W, generator=generator) > 0.2


def test_a_radius_is_lost_on_each_side(layer):
    x, valid = pixels()
    assert layer(x, valid).shape == (B, H - 2 * RADIUS, W - 2 * RADIUS, D)
    assert torch.equal(layer.inner(valid), valid[:, 2:-2, 2:-2])


def test_all_pairs_and_tiles_give_the_same(layer, monkeypatch):
    x, valid = pixels()
    x.requires_grad_()
    monkeypatch.setattr(around, "TILE", 16)
    by_pairs = layer(x, valid)
    (gradient,) = torch.autograd.grad(by_pairs.square().sum(), x)
    monkeypatch.setattr(around, "TILE", 4)
    by_tiles = layer(x, valid)
    torch.testing.assert_close(by_tiles, by_pairs)
    torch.testing.assert_close(torch.autograd.grad(by_tiles.square().sum(), x)[0], gradient)


@pytest.mark.parametrize("tile", [2, 4, 16])
def test_pixels_without_data_are_seen_by_nobody(layer, monkeypatch, tile):
    monkeypatch.setattr(around, "TILE", tile)
    x, valid = pixels()
    changed = x.masked_fill(~valid[..., None], 100.0)
    inner = layer.inner(valid)
    torch.testing.assert_close(layer(changed, valid)[inner], layer(x, valid)[inner])


def test_nobody_sees_beyond_the_radius(layer):
    x, valid = pixels()
    changed = x.clone()
    changed[:, 0, 0, 0] += 1.0
    differs = (layer(changed, torch.ones_like(valid)) != layer(x, torch.ones_like(valid))).any(-1)
    assert differs[:, 0, 0].all()
    assert not differs[:, 1:].any() and not differs[:, 0, 1:].any()
