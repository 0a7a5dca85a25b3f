"""The partial effects of a model that is a sum of a function of location and one of a band are these functions."""

import numpy as np

from mirada.tasks.location_effect import effect_of_layers, effect_of_location, grid_around, moved


def chips(num=41):
    generator = np.random.default_rng(0)
    layers = generator.normal(size=(num, 4, 3, 5)).astype(np.float32)
    lon, lat = generator.uniform(10, 20, num), generator.uniform(-5, 5, num)
    layers[:, 2] = lon[:, None, None] + 0.01 * np.arange(-2, 3)
    layers[:, 3] = lat[:, None, None] - 0.01 * np.arange(-1, 2)[:, None]
    return layers


def predict(layers):
    """Location of the middle, plus the band: no interaction."""
    return np.sin(layers[:, 2, 1, 2]) + layers[:, 3, 1, 2] + layers[:, 0].mean((1, 2))


def test_moved_chips_keep_their_size_and_layers():
    layers = chips(3)
    there = moved(layers, np.array([-100.0, 40.0]))
    np.testing.assert_array_equal(there[:, :2], layers[:, :2])
    np.testing.assert_allclose(there[:, 2:, 1, 2], [[-100, 40]] * 3, atol=1e-4)
    np.testing.assert_allclose(np.diff(there[:, 2]), np.diff(layers[:, 2]), atol=2e-5)
    assert not np.shares_memory(there, layers)


def test_effects_of_a_sum_are_its_terms():
    layers = chips()
    grid = grid_around(layers[:, 2:, 1, 2], (3, 4))
    band = layers[:, 0].mean((1, 2))
    location = effect_of_location(predict, layers, grid, samples=100)
    np.testing.assert_allclose(location, np.sin(grid[:, 0]) + grid[:, 1] + band.mean(), atol=1e-4)
    others = effect_of_layers(predict, layers, samples=100)
    place = np.sin(layers[:, 2, 1, 2]) + layers[:, 3, 1, 2]
    np.testing.assert_allclose(others, band + place.mean(), atol=1e-4)


def test_a_model_without_location_has_a_flat_effect_and_draws_are_seeded():
    layers = chips()

    def without(layers):
        return layers[:, 0].mean((1, 2))

    grid = grid_around(layers[:, 2:, 1, 2], (2, 2))
    effect = effect_of_location(without, layers, grid, samples=7)
    assert np.ptp(effect) == 0
    assert effect[0] == effect_of_location(without, layers, grid, samples=7)[0]
    assert effect[0] != effect_of_location(without, layers, grid, samples=7, seed=1)[0]


def test_grid_goes_from_north_west_to_south_east():
    grid = grid_around(np.array([[10.0, -5.0], [20.0, 5.0]]), (2, 3))
    assert grid.tolist() == [[10, 5], [15, 5], [20, 5], [10, -5], [15, -5], [20, -5]]
