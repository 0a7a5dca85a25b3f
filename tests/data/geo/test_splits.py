"""Dividing in space: no block on two sides, buffers hold, folds are a partition, the antimeridian is no seam."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.places import plots_at, scattered

from mirada.data.geo.blocks import auto_block_km, block_km, blocks_of
from mirada.data.geo.sphere import EARTH_KM, distance_km, equal_area_km, nearest_km, neighbour_km
from mirada.data.geo.splits import SCHEMES, folds_of, split_plots
from mirada.data.splits import Split
from mirada.errors import MiradaError

anywhere = st.builds(
    lambda num, seed, west, south: plots_at(scattered(num, seed, west, south)),
    st.integers(40, 120),
    st.integers(0, 99),
    st.sampled_from([-180, -70, 0, 171]),
    st.sampled_from([-60, -5, 50, 79]),
)


def distances(plots, rows, others):
    return np.stack([distance_km(plots.lonlat_N2[rows], plots.lonlat_N2[other]) for other in others], axis=1)


@given(anywhere, st.sampled_from(SCHEMES), st.integers(2, 5), st.integers(0, 9))
def test_folds_test_every_row_once(plots, scheme, folds, seed):
    divided = folds_of(plots, scheme, folds=folds, block=150, buffer_km=30, seed=seed)
    assert np.array_equal(np.sort(np.concatenate([test for _, test in divided])), np.arange(len(plots)))
    for train, test in divided:
        assert len(train) and len(test) and not np.intersect1d(train, test).size
        if scheme != "buffered":
            assert len(train) + len(test) == len(plots)


@given(anywhere, st.sampled_from([150, "250km", "2deg"]), st.integers(0, 9))
def test_no_block_lies_on_two_sides(plots, block, seed):
    blocks = blocks_of(plots, block)
    for train, test in folds_of(plots, "blocked", folds=3, block=block, seed=seed):
        assert not np.intersect1d(blocks[train], blocks[test]).size
    split = split_plots(plots, "blocked", block=block, seed=seed)
    sides = [set(blocks[split.rows(name)]) for name in ("train", "val", "test")]
    assert all(sides) and sum(map(len, sides)) == len(set(blocks))


@given(anywhere, st.floats(1, 120))
def test_the_buffer_holds_and_no_more_is_dropped(plots, buffer_km):
    whole = folds_of(plots, "blocked", folds=3, block=200)
    buffered = folds_of(plots, "buffered", folds=3, block=200, buffer_km=buffer_km)
    for (train, test), (every, _) in zip(buffered, whole, strict=True):
        away = distances(plots, every, test).min(axis=1)
        assert set(every[away >= buffer_km + 1e-6]) <= set(train) <= set(every[away >= buffer_km - 1e-6])


def test_the_buffer_of_a_split_holds_for_val_and_test():
    plots = plots_at(scattered(200))
    split = split_plots(plots, "buffered", block=200, buffer_km=60)
    held = np.concatenate([split.val, split.test])
    assert distances(plots, split.train, held).min() >= 60
    assert len(split.train) + len(held) < 200 and "within 60 km" in split.notes[1]


def test_folds_are_about_equal():
    plots = plots_at(scattered(1000))
    for scheme in ("random", "blocked"):
        sizes = [len(test) for _, test in folds_of(plots, scheme, folds=5, block=150)]
        assert max(sizes) - min(sizes) <= 10


def test_a_split_has_about_the_wanted_shares_and_survives_a_file():
    plots = plots_at(scattered(1000))
    for scheme in ("random", "blocked"):
        split = split_plots(plots, scheme, val=0.1, test=0.2, seed=3)
        assert split.how == scheme
        assert abs(len(split.val) - 100) < 20 and abs(len(split.test) - 200) < 20
        assert Split.from_dict(split.to_dict()).checksum() == split.checksum()
        assert split.checksum() == split_plots(plots, scheme, val=0.1, test=0.2, seed=3).checksum()
        assert split.checksum() != split_plots(plots, scheme, val=0.1, test=0.2, seed=4).checksum()


@given(st.floats(-89, 89), st.floats(20, 900))
def test_blocks_are_as_large_as_they_should_be(lat, side):
    ring = np.stack([np.linspace(-180, 180, 4001)[:-1], np.full(4000, lat)], axis=1)
    around_km = 2 * np.pi * EARTH_KM * np.cos(np.radians(lat))
    cells = np.bincount(blocks_of(plots_at(ring), side))
    assert cells.max() - cells.min() <= 2  # no narrow rest at the antimeridian
    if around_km > 10 * side:
        middles_differ = 1 + abs(np.tan(np.radians(lat))) * side / EARTH_KM  # a band is wider at one of its edges
        assert abs(around_km / len(cells) / side - 1) < 0.06 + middles_differ - 1


@given(st.integers(0, 99))
def test_the_antimeridian_is_an_ordinary_place(seed):
    home, moved = plots_at(scattered(60, seed, west=0)), plots_at(scattered(60, seed, west=170))
    sizes = [np.sort(np.bincount(blocks_of(plots, 400))) for plots in (home, moved)]
    assert abs(len(sizes[0]) - len(sizes[1])) <= 8
    assert np.allclose(neighbour_km(home.lonlat_N2), neighbour_km(moved.lonlat_N2))
    assert np.allclose(equal_area_km(home.lonlat_N2), equal_area_km(moved.lonlat_N2))


def test_distances_on_the_sphere():
    quarter = np.pi / 2 * EARTH_KM
    assert distance_km(np.array([0, 0]), np.array([90, 0])) == pytest.approx(quarter)
    assert distance_km(np.array([17, 90]), np.array([-120, -90])) == pytest.approx(2 * quarter)
    assert distance_km(np.array([179.5, 0]), np.array([-179.5, 0])) == pytest.approx(quarter / 90)
    near = nearest_km(np.array([[179.5, 0.0]]), np.array([[170.0, 0.0], [-179.5, 0.0]]))
    assert near == pytest.approx(quarter / 90)


def test_the_map_keeps_areas():
    cap = np.stack([np.linspace(-180, 180, 721)[:-1], np.full(720, 60.0)], axis=1)
    radius = np.linalg.norm(equal_area_km(cap), axis=1)
    assert np.allclose(np.pi * radius**2, 2 * np.pi * EARTH_KM**2 * (1 - np.sin(np.radians(60))))


def test_the_block_that_is_chosen():
    crowded, wide = plots_at(scattered(500, width=0.5, height=0.5)), plots_at(scattered(500, west=-180, width=360))
    assert auto_block_km(crowded) < 10 < auto_block_km(wide) <= 1000
    for plots in (crowded, wide):
        assert len(np.unique(blocks_of(plots, auto_block_km(plots)))) >= 40
    assert block_km("3deg") == pytest.approx(333.6, abs=0.1) and block_km("50 km") == 50


def test_the_given_split_is_kept_and_completed():
    names = np.array(["train"] * 60 + ["test"] * 40)
    plots = plots_at(scattered(100), splits=names)
    split = split_plots(plots, "blocked", block=200)
    assert split.how == "given" and np.array_equal(split.test, np.arange(60, 100))
    assert len(split.val) and len(split.train) + len(split.val) == 60 and "taken out of train" in split.notes[0]
    blocks = blocks_of(plots, 200)
    assert not np.intersect1d(blocks[split.train], blocks[split.val]).size


def test_what_is_refused():
    plots = plots_at(scattered(50))
    with pytest.raises(MiradaError, match="did you mean 'blocked'"):
        folds_of(plots, "block")
    with pytest.raises(MiradaError, match="block is 'wide'"):
        blocks_of(plots, "wide")
    with pytest.raises(MiradaError, match="smaller block"):
        folds_of(plots, "blocked", folds=5, block=20_000)
    with pytest.raises(MiradaError, match="smaller block"):
        split_plots(plots, "blocked", block=20_000)
    with pytest.raises(MiradaError, match="smaller buffer_km"):
        folds_of(plots, "buffered", block=100, buffer_km=5_000)
    with pytest.raises(MiradaError, match="buffer_km is -1"):
        folds_of(plots, "buffered", block=100, buffer_km=-1)
    with pytest.raises(MiradaError, match="fractions"):
        split_plots(plots, "random", val=0.5, test=0.6)


def test_blocks_of_new_zealand(real_data):
    from mirada.data.geo.read_plots import open_plots

    plots = open_plots(real_data("geo/nz_plant_richness.csv"))
    assert auto_block_km(plots) == 100
