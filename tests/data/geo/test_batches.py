"""Layers, their scale, and batches as a pure function of (seed, epoch, step)."""

import numpy as np
import pytest
import torch
from tests.places import plots_at, scattered

from mirada.data.geo.batches import PlotBatches, layers_of, plot_evaluation, turned
from mirada.data.geo.chips import Chips
from mirada.data.geo.scale import LayerScale, layer_scale
from mirada.errors import MiradaError

NUM, BANDS, SIZE = 29, 3, 5


@pytest.fixture
def plots():
    generator = np.random.default_rng(0)
    lonlat = scattered(NUM)
    pixels = generator.normal(1000, 200, size=(NUM, BANDS, SIZE, SIZE)).astype(np.float32)
    pixels[4, 1, 0, 3] = np.nan
    places = lonlat[:, :, None, None] + 0.01 * np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    made = plots_at(lonlat, chips=Chips(pixels, places.astype(np.float32), ("red", "green", "blue")))
    made.covariates_ND[7, 1] = np.nan
    return made


def test_layers_are_bands_covariates_longitude_latitude(plots):
    layers = layers_of(plots)
    assert layers.shape == (NUM, BANDS + 2 + 2, SIZE, SIZE) and layers.dtype == torch.float32
    assert np.array_equal(layers[:, :BANDS].numpy(), plots.chips.pixels_NCHW, equal_nan=True)
    assert np.array_equal(layers[:, BANDS, 1, 4].numpy(), plots.covariates_ND[:, 0])
    assert layers[7, BANDS + 1].isnan().all() and not layers[6, BANDS + 1].isnan().any()
    assert np.array_equal(layers[:, -2:].numpy(), plots.chips.lonlat_N2HW)


def test_points_are_chips_of_one_pixel():
    plots = plots_at(scattered(NUM))
    layers = layers_of(plots)
    assert layers.shape == (NUM, 4, 1, 1)
    assert np.allclose(layers[:, 2:, 0, 0].numpy(), plots.lonlat_N2)


def test_the_scale_knows_only_its_rows_and_what_is_there(plots):
    layers, rows = layers_of(plots), np.arange(20)
    scale = layer_scale(layers, rows)
    scaled = scale.apply(layers)
    within = scaled[:20, : BANDS + 2].transpose(0, 1).flatten(1)
    assert torch.allclose(within.nanmean(1), torch.zeros(5), atol=1e-4)
    assert torch.allclose((within**2).nanmean(1), torch.ones(5), atol=1e-4)
    assert torch.equal(scaled[:, -2:], layers[:, -2:]) and torch.equal(scaled.isnan(), layers.isnan())
    changed = layers.clone()
    changed[20:] = 0
    assert layer_scale(changed, rows) == scale
    assert LayerScale.from_dict(scale.to_dict()) == scale


def test_a_scale_may_leave_the_values(plots):
    layers = layers_of(plots)
    assert layer_scale(layers, np.arange(NUM), "raw").apply(layers) is layers
    with pytest.raises(MiradaError, match="standard or raw"):
        layer_scale(layers, np.arange(NUM), "log")


def test_a_layer_that_never_varies_or_is_missing_stays_finite(plots):
    layers = layers_of(plots)
    layers[:, 0], layers[:, 1] = 7.5, torch.nan
    scaled = layer_scale(layers, np.arange(NUM)).apply(layers)
    assert (scaled[:, 0] == 0).all() and scaled[:, 1].isnan().all()


def test_another_number_of_layers_is_refused(plots):
    layers = layers_of(plots)
    with pytest.raises(MiradaError, match="there are 4 bands and covariates, expected 5"):
        layer_scale(layers, np.arange(NUM)).apply(layers[:, 1:])


def batches(plots, **changes):
    layers, rows = layers_of(plots), np.arange(3, NUM)
    options = {"batch_size": 7, "scale": layer_scale(layers, rows), "seed": 5, **changes}
    return PlotBatches(layers, plots.targets_N, rows, **options)


def test_batches_depend_on_seed_epoch_and_step_only(plots):
    first, second = batches(plots, turns=True), batches(plots, turns=True)
    assert len(first) == 3
    walked = [*first, *first]
    assert (first.epoch, first.step) == (2, 0)
    for number, batch in reversed(list(enumerate(walked))):
        again = second.batch(*divmod(number, 3))
        assert torch.equal(again.inputs.nan_to_num(), batch.inputs.nan_to_num()) and torch.equal(again.rows, batch.rows)
    assert not torch.equal(walked[0].rows, walked[3].rows)
    assert not torch.equal(walked[0].rows, batches(plots, seed=6).batch(0, 0).rows)


def test_a_batch_holds_what_belongs_to_its_rows(plots):
    layers = layers_of(plots)
    whole = batches(plots)
    seen = torch.cat([batch.rows for batch in whole])
    assert len(seen.unique()) == len(seen) == 21 and seen.min() >= 3
    batch = whole.batch(0, 1)
    assert torch.equal(batch.targets, batch.rows.float())
    assert torch.allclose(batch.inputs, whole.scale.apply(layers)[batch.rows], equal_nan=True)


def test_a_turned_chip_keeps_its_pixels_together():
    pixels = torch.arange(200 * 2 * 9.0).reshape(200, 2, 3, 3)
    pixels[:, 1] = pixels[:, 0] + 0.5
    after = turned(pixels, torch.Generator().manual_seed(0))
    assert torch.equal(after[:, 1], after[:, 0] + 0.5)
    assert torch.equal(after.flatten(2).sort(-1).values, pixels.flatten(2))
    assert torch.equal(after[:, :, 1, 1], pixels[:, :, 1, 1])
    ways = {tuple((chip - chip.min()).flatten().tolist()) for chip in after[:, 0]}
    assert len(ways) == 8


def test_evaluation_goes_through_the_rows_in_order(plots):
    layers, rows = layers_of(plots), [5, 2, 11, 7, 3]
    scale = layer_scale(layers, np.arange(NUM))
    found = list(plot_evaluation(layers, plots.targets_N, rows, batch_size=2, scale=scale))
    assert [batch.rows.tolist() for batch in found] == [[5, 2], [11, 7], [3]]
    assert torch.equal(torch.cat([batch.targets for batch in found]), torch.tensor(rows).float())
    assert torch.allclose(found[2].inputs, scale.apply(layers)[[3]], equal_nan=True)
    assert list(plot_evaluation(layers, plots.targets_N, [], batch_size=2, scale=scale)) == []


def test_what_is_refused(plots):
    with pytest.raises(MiradaError, match="batch_size is 0"):
        batches(plots, batch_size=0)
    layers = layers_of(plots)
    with pytest.raises(MiradaError, match="0 training rows"):
        PlotBatches(layers, plots.targets_N, [], batch_size=2, scale=layer_scale(layers, [0]))
