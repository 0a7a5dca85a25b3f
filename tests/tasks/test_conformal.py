"""Conformal intervals: the quantile by hand, and what they cover in simulations with errors shared by blocks."""

import math

import numpy as np
import pytest

from mirada.errors import MiradaError
from mirada.tasks.conformal import Conformal, block_quantile, leave_one_fold_out_coverage


def test_one_row_per_block_is_split_conformal():
    scores = np.random.default_rng(0).permutation(np.arange(1.0, 100.0))  # 1 … 99
    assert block_quantile(scores, np.arange(99), 0.9) == 90  # ⌈0.9 · 100⌉
    assert block_quantile(scores[:50], np.arange(50), 0.9) == np.sort(scores[:50])[math.ceil(0.9 * 51) - 1]


def test_quantile_by_hand_where_a_big_block_does_not_decide():
    scores = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 7.0, 8.0])
    blocks = np.array([0] * 6 + [1, 1, 2])
    # Masses with three blocks: 1/4 at 1, 1/8 at 5, 1/8 at 7, 1/4 at 8 and 1/4 at infinity.
    assert [block_quantile(scores, blocks, c) for c in (0.25, 0.3, 0.5, 0.55, 0.75)] == [1, 5, 7, 8, 8]
    assert block_quantile(scores, blocks, 0.8) == math.inf


def test_too_few_blocks_are_named():
    with pytest.raises(MiradaError, match=r"8 held-out blocks are too few.*90%.*need 9"):
        Conformal.fit(np.ones(80), None, np.arange(80) % 8)
    assert Conformal.fit(np.arange(90.0), None, np.arange(90) % 9).quantile == 89
    with pytest.raises(MiradaError, match="coverage=90"):
        Conformal.fit(np.ones(80), None, np.arange(80), 90)


def test_intervals_are_scaled_and_cut_at_what_is_possible():
    residuals, scales = np.array([-2.0, 4.0, 6.0] * 4), np.array([1.0, 2.0, 3.0] * 4)
    fitted = Conformal.fit(residuals, scales, np.arange(12), 0.8)
    assert fitted == Conformal(0.8, 2.0, 12, True)
    low, high = fitted.interval(np.array([1.0, 10.0]), np.array([1.0, 3.0]), lowest=0.0)
    assert low.tolist() == [0.0, 4.0] and high.tolist() == [3.0, 16.0]
    plain = Conformal.fit(residuals, None, np.arange(12), 0.8)
    assert [end.tolist() for end in plain.interval(np.array([[1.0]]))] == [[[-5.0]], [[7.0]]]
    assert Conformal.from_dict(plain.to_dict()) == plain


def clustered(generator, num_blocks):
    """Errors of blocks of very different sizes, part of them shared by the block; big blocks err less."""
    size = np.where(np.arange(num_blocks) % 10 == 0, 60, generator.integers(1, 6, num_blocks))
    block = np.repeat(np.arange(num_blocks), size)
    spread = np.where(size == 60, 0.3, 1.0)[block]
    error = spread * (generator.normal(size=num_blocks)[block] + 0.5 * generator.normal(size=len(block)))
    return error, block


@pytest.mark.parametrize("num_blocks", [20, 60])
def test_a_new_block_is_covered_as_promised(num_blocks):
    generator, by_block, by_row = np.random.default_rng(0), [], []
    for _ in range(400):
        error, block = clustered(generator, num_blocks)
        new_error, new_block = clustered(generator, 20)
        quantile = Conformal.fit(error, None, block).quantile
        by_block.append(np.mean([(np.abs(new_error[new_block == b]) <= quantile).mean() for b in range(20)]))
        rows = np.sort(np.abs(error))[math.ceil(0.9 * (len(error) + 1)) - 1]
        by_row.append(np.mean([(np.abs(new_error[new_block == b]) <= rows).mean() for b in range(20)]))
    assert 0.89 < np.mean(by_block) < 0.9 + 2 / (num_blocks + 1) + 0.01
    assert np.mean(by_row) < 0.8  # rows alike: the few big blocks, which err less, decide


def test_normalised_residuals_give_each_place_its_own_width():
    generator = np.random.default_rng(0)
    block = np.repeat(np.arange(200), 5)
    scale = generator.uniform(0.2, 3.0, 1000)
    error = scale * generator.normal(size=1000)
    plain, own = (leave_one_fold_out_coverage(error, s, block % 5, blocks_N=block) for s in (None, scale))
    assert plain.rows == pytest.approx(0.9, abs=0.03) and own.rows == pytest.approx(0.9, abs=0.03)
    assert own.half_width < 0.95 * plain.half_width


def test_coverage_is_that_of_folds_left_out():
    generator = np.random.default_rng(0)
    found = [clustered(np.random.default_rng(seed), 60) for seed in range(30)]
    measured = [leave_one_fold_out_coverage(e, None, b % 5, 0.9, blocks_N=b) for e, b in found]
    assert np.mean([m.blocks for m in measured]) == pytest.approx(0.91, abs=0.02)
    error = generator.normal(size=400)
    error[:100] *= 10  # a fold whose errors no other fold has
    one = leave_one_fold_out_coverage(error, None, np.repeat(np.arange(4), 100), 0.9)
    assert one.per_fold["0"] < 0.3 and min(one.per_fold[name] for name in "123") > 0.95
    assert one.rows == pytest.approx(np.mean(list(one.per_fold.values())))
    assert one.blocks == pytest.approx(one.rows) and one.promised == 0.9


def test_coverage_left_out_by_hand():
    residuals, folds = np.array([1.0, -2.0, 3.0, 4.0, -5.0, 6.0]), np.array([0, 0, 0, 1, 1, 1])
    # Half of four places (three scores and infinity) is the second score: 5 for fold 0, 2 for fold 1.
    measured = leave_one_fold_out_coverage(residuals, None, folds, 0.5)
    assert measured.per_fold == {"0": 1.0, "1": 0.0} and measured.rows == 0.5
    assert measured.half_width == pytest.approx((5 + 2) / 2)
