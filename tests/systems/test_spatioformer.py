"""Our Spatioformer: what a place sees around it, at which plots it may look, and what follows for its prediction."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from mirada.core import Mask, record
from mirada.core.kernels import distances
from mirada.errors import MiradaError
from mirada.nn.windows_of_layers import windows_of
from mirada.systems import Spatioformer, card, spatioformer
from tests.systems.common_plot_checks import CENTER, CLOSE, EXTENT_KM, PLOT_CHECKS, layers, plot_maker

BANDS, COVARIATES, PLOTS, SIDE, MEMBERS = 3, 2, 29, 7, 3
MIDDLE = SIDE // 2


def small(**arguments) -> Spatioformer:
    """In evaluation, with plots to look at whose targets are far from those of a standard normal."""
    given = {"in_channels": BANDS, "num_covariates": COVARIATES, "num_plots": PLOTS, "chip_size": SIDE}
    given |= {"dim": 8, "num_heads": 2, "members": MEMBERS, "center": CENTER, "extent_km": EXTENT_KM}
    torch.manual_seed(7)
    model = Spatioformer(**given | arguments).eval()
    plots = layers(PLOTS, model.towers[0].in_channels, COVARIATES, (model.chip_size,) * 2, seed=3)
    model.remember(plots, targets())
    return model


def targets() -> Tensor:
    return torch.rand(PLOTS, generator=torch.Generator().manual_seed(2)) * 5 - 2


def places(num: int = 5, size: tuple[int, int] = (SIDE, SIDE)) -> Tensor:
    return layers(num, BANDS, COVARIATES, size)


# --- around a place ---


@pytest.mark.parametrize(("side", "depth"), [(1, 2), (3, 1), (3, 5), (7, 2), (7, 3)])
def test_a_place_sees_its_chip_and_no_more(side, depth):
    model, raster = small(chip_size=side, depth=depth), places(1, (side + 4, side + 6)).requires_grad_()
    model.dense(raster)[..., 1, 4].square().sum().backward()
    is_seen_HW = raster.grad[0, :BANDS].abs().sum(0) > 0
    expected = torch.zeros_like(is_seen_HW)
    expected[1 : 1 + side, 4 : 4 + side] = True
    assert torch.equal(is_seen_HW, expected)
    is_known_HW = raster.grad[0, BANDS:].abs().sum(0) > 0
    assert is_known_HW.nonzero().tolist() == [[1 + side // 2, 4 + side // 2]], "covariates and place of the middle only"


def test_a_map_in_parts_is_the_same(monkeypatch):
    model, raster = small(), places(2, (9, 12))
    at_once = model.dense(raster)
    assert at_once.shape == (2, MEMBERS, 2, 3, 6)
    monkeypatch.setattr(distances, "QUERIES_AT_ONCE", 5)
    monkeypatch.setattr(spatioformer, "PLOTS_AT_ONCE", 5)
    torch.testing.assert_close(model.dense(raster), at_once, **CLOSE)
    before = model.keys_MPD.clone()
    model.remember(layers(PLOTS, BANDS, COVARIATES, (SIDE, SIDE), seed=3), targets())
    torch.testing.assert_close(model.keys_MPD, before, **CLOSE)


def test_a_plot_is_answered_alike_on_a_map_and_alone():
    """Where a place is a plot that is kept, it is at distance zero from itself, whoever else is asked."""
    model, raster = small(), 3 * places(1, (17, 19))
    chips, _ = windows_of(raster, SIDE)
    with torch.no_grad():
        model.attend.score.log_sharpness.fill_(3.0)
        model.remember(chips[:PLOTS], targets())
        on_map = model.dense(raster)[0].flatten(2).movedim(-1, 0)[:PLOTS]
        alone = torch.cat([model(chip[None]) for chip in chips[:PLOTS]])
    torch.testing.assert_close(alone, on_map, **CLOSE)


@pytest.mark.parametrize("nothing", [torch.nan, torch.inf, -torch.inf])
def test_pixels_without_data_are_seen_by_nobody(nothing):
    """One band is missing: the others of that pixel count for nothing either."""
    model, given = small(), places()
    given[:, 0, MIDDLE - 1, MIDDLE + 2] = nothing
    changed = given.clone()
    changed[:, 1, MIDDLE - 1, MIDDLE + 2] = 50.0
    assert torch.equal(model(changed), model(given))
    given[:, 0, MIDDLE - 1, MIDDLE + 2] = 0.0
    changed[:, 0, MIDDLE - 1, MIDDLE + 2] = 0.0
    assert not torch.allclose(model(changed), model(given))


def test_nobody_looks_at_pixels_without_data():
    model, given = small(depth=1), places()
    given[:, 2, 0, 1] = torch.nan
    with record(model) as maps:
        model(given)
    around = [maps[name] for name in maps if "around" in name]
    assert len(around) == MEMBERS
    for weights_BHNM in around:
        assert not weights_BHNM[..., 1].any()
        torch.testing.assert_close(weights_BHNM.sum(-1), torch.ones(weights_BHNM.shape[:-1]))


def test_nothing_known_but_the_place_still_gives_an_answer():
    model, given = small(), places()
    given[:, : BANDS + COVARIATES] = torch.nan
    outputs = model(given)
    assert outputs.isfinite().all()
    given[:, -2:] += 2
    assert not torch.allclose(model(given), outputs)
    assert model.dense(given).isfinite().all()


# --- at plots ---


def test_a_prediction_is_a_mean_of_what_is_known_and_its_variance():
    model, given = small(), places()
    with record(model, layers=["attend"]) as maps:
        outputs = model(given)
    alpha_M1NP = maps["attend"]
    assert alpha_M1NP.shape == (MEMBERS, 1, len(given), PLOTS)
    torch.testing.assert_close(alpha_M1NP.sum(-1), torch.ones(MEMBERS, 1, len(given)))
    mean_NM = (alpha_M1NP[:, 0] @ targets()).T
    square_NM = (alpha_M1NP[:, 0] @ targets().square()).T
    torch.testing.assert_close(outputs, torch.stack([mean_NM, (square_NM - mean_NM.square()).log()], -1), **CLOSE)


@pytest.mark.parametrize("log_sharpness", [0.0, 5.0])
def test_no_prediction_leaves_the_range_of_what_is_known(log_sharpness):
    """Far from all plots, and in an image like no other, too."""
    model, given = small(), places(101)
    with torch.no_grad():
        model.attend.score.log_sharpness.fill_(log_sharpness)
    given[:50, :BANDS] *= 100
    given[50:, -2:] -= 60
    outputs = model(given)
    assert (outputs[..., 0] >= targets().min() - 1e-5).all() and (outputs[..., 0] <= targets().max() + 1e-5).all()
    assert (outputs[..., 1].exp() >= spatioformer.SMALLEST_VARIANCE * 0.999).all()


def test_members_differ():
    value_NM = small()(places())[..., 0]
    assert value_NM.shape == (5, MEMBERS)
    assert (value_NM.std(1) > 1e-3).all()


def look_among_blocks(model: Spatioformer, known_P: Tensor, block_P: Tensor, block_N: Tensor) -> Tensor:
    z_MND = model.embed(places(len(block_N))).flatten(1, 3)
    return model.look(z_MND, model.keys_MPD, known_P, Mask(block_N[:, None] != block_P))


def test_a_mask_of_other_blocks_keeps_the_own_block_out():
    model, block_N = small(), torch.tensor([0, 1, 1, 2, 5])
    block_P = torch.arange(PLOTS) % 5
    outputs = look_among_blocks(model, targets(), block_P, block_N)
    for block in range(5):
        known = targets()
        known[block_P == block] = 1000.0
        changed = look_among_blocks(model, known, block_P, block_N)
        is_own_N = block_N == block
        assert torch.equal(changed[is_own_N], outputs[is_own_N]), f"a place of block {block} saw its own block"
        assert (changed[~is_own_N, :, 0] > outputs[~is_own_N, :, 0]).all()


def test_a_place_that_may_look_at_no_plot_gets_the_mean_of_standardised_targets():
    block_N, block_P = torch.zeros(5, dtype=torch.long), torch.zeros(PLOTS, dtype=torch.long)
    outputs = look_among_blocks(small(), targets(), block_P, block_N)
    assert not outputs[..., 0].any() and outputs.isfinite().all()


def test_remembers_plots_as_it_sees_them_now():
    model, given = small(), places()
    plots, known = layers(PLOTS, BANDS, COVARIATES, (SIDE, SIDE), seed=8), targets().flip(0)
    before = model(given)
    model.remember(plots, known)
    z_MND, keys_MPD = (model.embed(some).flatten(1, 3) for some in (given, plots))
    torch.testing.assert_close(model(given), model.look(z_MND, keys_MPD, known), **CLOSE)
    assert not torch.allclose(model(given), before)
    assert not model.keys_MPD.requires_grad
    other = small()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(given), model(given))


# --- choices ---


@pytest.mark.parametrize("location", ["sphere", "waves", "paper"])
def test_every_location_is_seen_and_none_is_not(location):
    given, moved = places(), places()
    moved[:, -2] += 3
    assert not torch.allclose(small(location=location)(moved), small(location=location)(given))
    assert torch.equal(small(location="none")(moved), small(location="none")(given))


@pytest.mark.parametrize("check", ["learns_with_every_parameter", "dense_equals_forward", "overfits_eight_samples"])
@pytest.mark.parametrize(
    "variant", [{"location": "waves"}, {"location": "paper"}, {"depth": 2}, {"members": 1}], ids=str
)
def test_every_part_passes_the_common_checks(variant, check):
    PLOT_CHECKS[check](plot_maker(card("spatioformer"), **variant))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"location": "spheer"}, r"location='spheer' \(did you mean 'sphere'\?\): must be one of sphere, waves"),
        ({"chip_size": 6}, "chip_size=6: must be odd"),
    ],
)
def test_misuse_is_refused(arguments, message):
    with pytest.raises(MiradaError, match=message):
        small(**arguments)


def test_other_chips_are_refused():
    with pytest.raises(MiradaError, match=r"7 layers of 9 × 9 pixels: .* and 7 × 7 pixels; use dense for a raster"):
        small()(places(size=(9, 9)))
    with pytest.raises(MiradaError, match="5 layers of 7 × 7 pixels"):
        small()(places()[:, 2:])


# --- what location is worth ---


def field(response: str, num: int = 500) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of points with one covariate x over 20° × 20°, y = a(lon) x + noise, and blocks of 2.5°."""
    generator = torch.Generator().manual_seed(1)
    lonlat_N2 = 20 * torch.rand(num, 2, generator=generator)
    x_N, noise_N = torch.randn(2, num, generator=generator)
    slope_N = {"changing": (lonlat_N2[:, 0] - 10) / 5, "stationary": torch.ones(num)}[response]
    block_N = (lonlat_N2 // 2.5 * torch.tensor([8, 1])).sum(1).long()
    return torch.cat([x_N[:, None], lonlat_N2], 1)[:, :, None, None], slope_N * x_N + 0.3 * noise_N, block_N


def held_out_r2(response: str, location: str, num_steps: int = 150) -> float:
    """Of blocks that were not trained on, after a short training in which no plot sees its own block."""
    torch.manual_seed(0)
    layers_NLHW, y_N, block_N = field(response)
    is_held_out = block_N % 4 == 1
    train = (~is_held_out).nonzero()[:, 0]
    known_P = (y_N - y_N[train].mean())[train] / y_N[train].std()
    model = Spatioformer(
        0, 1, len(train), 1, 1, dim=16, num_heads=2, members=1, dropout=0.0,
        location=location, center=(10.0, 10.0), extent_km=650.0,
    )  # fmt: skip
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(num_steps):
        asking = torch.randperm(len(train))[:64]
        z_1PD = model.embed(layers_NLHW[train]).flatten(1, 3)
        others = Mask(block_N[train][asking, None] != block_N[train])
        loss = (model.look(z_1PD[:, asking], z_1PD, known_P, others)[:, 0, 0] - known_P[asking]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval().remember(layers_NLHW[train], known_P)
    with torch.no_grad():
        predicted = model(layers_NLHW[is_held_out])[:, 0, 0] * y_N[train].std() + y_N[train].mean()
    held_out = y_N[is_held_out]
    return 1 - ((held_out - predicted).square().mean() / held_out.var(correction=0)).item()


def test_location_is_worth_what_the_response_changes_from_place_to_place():
    assert held_out_r2("changing", "none") < 0.1
    assert held_out_r2("changing", "sphere") > 0.8


def test_location_is_worth_nothing_where_the_response_is_stationary():
    without, with_place = (held_out_r2("stationary", location) for location in ("none", "sphere"))
    assert without > 0.8
    assert abs(with_place - without) < 0.05


def test_nothing_is_drawn_in_evaluation():
    model, given = small(dropout=0.5, coordinate_dropout=0.5), places()
    assert torch.equal(model(given), model(given))
    assert not torch.equal(model.train()(given), model(given))
    assert any(isinstance(module, nn.Dropout) and module.p == 0.5 for module in model.modules())
