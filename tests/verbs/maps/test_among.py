"""Plots among others: who may look at whom in training, and what a trained model keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mirada.systems import Spatioformer
from mirada.verbs.maps.among import AmongPlots, distances_km

KM_PER_DEGREE = 111.19


def plots_along_the_equator(num: int) -> Tensor:
    """One covariate, then longitude and latitude: a degree apart."""
    layers = torch.zeros(num, 3, 1, 1)
    layers[:, 0, 0, 0] = torch.randn(num, generator=torch.Generator().manual_seed(3))
    layers[:, 1, 0, 0] = torch.arange(num)
    return layers


def among(layers: Tensor, known: Tensor, **options: float) -> AmongPlots:
    torch.manual_seed(5)
    model = Spatioformer(0, 1, num_plots=2, chip_size=1, dim=8, num_heads=2, members=3, dropout=0.0)
    learned = torch.ones(len(known), dtype=torch.bool)
    learned[4] = False
    parts = {"learned_P": learned, "kept": torch.tensor([1, 4]), "seen": 100, "blind_km": 0.0}
    return AmongPlots(model, layers, known, **{**parts, **options})


def test_distances_are_along_the_surface():
    layers = plots_along_the_equator(5)
    layers[4, 1:, 0, 0] = torch.tensor([-179.0, 0.0])
    east = layers[:1].clone()
    east[0, 1, 0, 0] = 180.0
    found = distances_km(torch.cat([layers[:1], east]), layers)
    assert found[0, :4].tolist() == pytest.approx([0, *(KM_PER_DEGREE * n for n in (1, 2, 3))], rel=1e-3, abs=1e-6)
    assert found[1, 4].item() == pytest.approx(KM_PER_DEGREE, rel=1e-3)  # over the antimeridian


def test_in_training_no_plot_sees_itself():
    layers, known = plots_along_the_equator(7), torch.zeros(7)
    model = among(layers, known).train()
    torch.manual_seed(1)
    without = model(layers[2:3])
    model.known_P[2] = 100.0
    torch.manual_seed(1)
    assert torch.equal(model(layers[2:3]), without)


def test_in_training_a_plot_does_not_see_what_is_near(monkeypatch):
    layers, known = plots_along_the_equator(7), torch.zeros(7)
    model = among(layers, known, blind_km=2.5 * KM_PER_DEGREE).train()
    monkeypatch.setattr(torch, "rand", lambda *size, device=None: torch.ones(*size))  # the largest distance
    torch.manual_seed(1)
    without = model(layers[3:4])
    model.known_P[1:6] = 100.0
    torch.manual_seed(1)
    assert torch.equal(model(layers[3:4]), without)
    model.known_P[6] = 100.0
    torch.manual_seed(1)
    assert not torch.equal(model(layers[3:4]), without)


def test_in_training_nobody_sees_the_plots_that_judge():
    layers, known = plots_along_the_equator(7), torch.zeros(7)
    model = among(layers, known).train()
    torch.manual_seed(1)
    without = model(layers[:1])
    model.known_P[4] = 100.0
    torch.manual_seed(1)
    assert torch.equal(model(layers[:1]), without)


def test_what_a_model_remembers_while_it_is_judged_and_when_it_is_done():
    layers, known = plots_along_the_equator(7), torch.arange(7.0)
    model = among(layers, known).eval()
    model.remember_learned()
    torch.testing.assert_close(model(layers)[..., 0], torch.ones(7, 3))  # plot 1 alone
    model.remember_all()
    assert model.model.known_P.tolist() == [1.0, 4.0]
    means = model(layers)[..., 0]
    assert ((means > 1) & (means < 4)).all()


def test_its_state_is_that_of_the_model():
    model = among(plots_along_the_equator(7), torch.zeros(7))
    assert set(model.state_dict()) == set(model.model.state_dict())
    assert "keys_MPD" in model.state_dict()
