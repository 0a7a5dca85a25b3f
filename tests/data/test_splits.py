"""Splits: everything is used once, nothing leaks, small classes have a defined fate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.data import Split, make_split, open_source
from mirada.data.fingerprint import near_rows, row_hashes, same_rows
from mirada.data.splits import strata
from mirada.data.table import ImageTable
from mirada.errors import MiradaError


def table_of(targets, task="single-label", groups=None, splits=None) -> ImageTable:
    targets = np.asarray(targets)
    num_classes = {"single-label": int(targets.max()) + 1, "multi-label": targets.shape[-1], "regression": 0}[task]
    return ImageTable(
        source="set",
        kind="npz",
        task=task,
        targets=targets,
        class_names=tuple(map(str, range(num_classes))),
        target_names=("y",) if task == "regression" else (),
        pixels=np.arange(len(targets) * 4, dtype=np.uint32).view(np.uint8).reshape(-1, 2, 2, 4),
        groups=None if groups is None else np.asarray(groups),
        splits=None if splits is None else np.asarray(splits),
    )


def sides_of(split: Split, count: int) -> np.ndarray:
    sides = np.full(count, -1)
    for number, rows in enumerate((split.train, split.val, split.test)):
        assert (sides[rows] == -1).all()
        sides[rows] = number
    assert (sides >= 0).all()
    return sides


def test_stratified_shares():
    table = table_of(np.repeat([0, 1, 2], [100, 200, 40]))
    split = make_split(table, seed=3)
    assert split.how == "stratified"
    for rows, expected in ((split.train, [70, 140, 28]), (split.val, [15, 30, 6]), (split.test, [15, 30, 6])):
        assert table.class_counts(rows).tolist() == expected
    sides_of(split, 340)


def test_seed_decides_and_checksum_tells():
    table = table_of(np.repeat([0, 1], 50))
    first, again, other = (make_split(table, seed=seed) for seed in (1, 1, 2))
    assert first.checksum() == again.checksum() != other.checksum()


def test_written_down_and_read_back():
    split = make_split(table_of(np.repeat([0, 1], 50)))
    saved = split.to_dict()
    assert Split.from_dict(saved).checksum() == split.checksum()
    with pytest.raises(MiradaError, match="checksum"):
        Split.from_dict({**saved, "train": saved["train"][1:]})


def test_classes_with_one_two_and_three_images():
    table = table_of([0] * 20 + [1] + [2] * 2 + [3] * 3)
    split = make_split(table)
    assert table.class_counts(split.train)[1:].tolist() == [1, 1, 1]
    assert table.class_counts(split.val)[1:].tolist() == [0, 0, 1]
    assert table.class_counts(split.test)[1:].tolist() == [0, 1, 1]
    assert split.notes == ("classes without a test image (too few images): 1.",)


def test_three_groups_reach_three_sides():
    table = table_of(np.repeat([0, 1], 30), groups=np.repeat(np.arange(6), 10))
    split = make_split(table)
    assert split.how == "grouped"
    assert [table.class_counts(rows).tolist() for rows in (split.train, split.val, split.test)] == [[10, 10]] * 3


def test_identical_images_stay_together():
    targets = np.repeat([0, 1], 60)
    hashes = [bytes([row % 40]) for row in range(120)]
    sides = sides_of(make_split(table_of(targets), hashes=hashes), 120)
    for group in same_rows(hashes):
        assert len(set(sides[group])) == 1
    assert set(sides) == {0, 1, 2}


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 30)), min_size=8, max_size=60)


@given(ROWS, st.integers(0, 9))
def test_nothing_leaks_whatever_the_groups(rows, seed):
    targets, groups, images = (np.array(column) for column in zip(*rows, strict=True))
    hashes = [bytes([image]) for image in images]
    try:
        split = make_split(table_of(targets, groups=groups), seed=seed, hashes=hashes)
    except MiradaError:  # everything hangs together
        return
    sides = sides_of(split, len(rows))
    for key in (groups.tolist(), hashes):
        assert all(len(set(sides[group])) == 1 for group in same_rows(key))


def test_given_split_is_kept_and_completed():
    given_split = ["train"] * 80 + ["test"] * 20
    table = table_of(np.tile([0, 1], 50), splits=given_split)
    hashes = [bytes([min(row, 99 - row)]) for row in range(100)]  # row 0 equals row 99, and so on
    split = make_split(table, hashes=hashes)
    assert split.how == "given"
    assert split.test.tolist() == list(range(80, 100))
    assert table.class_counts(split.val).tolist() == [6, 6]
    assert "20 images appear on more than one side" in split.notes[0]
    sides = sides_of(split, 100)
    assert all(sides[row] == sides[99 - row] for row in range(20, 50))  # the new val does not leak from train


def test_given_val_without_test_is_said():
    table = table_of([0, 1] * 5, splits=["train"] * 6 + ["val"] * 4)
    split = make_split(table)
    assert (len(split.val), len(split.test)) == (4, 0)
    assert "optimistic" in split.notes[0]


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        (table_of([0]), {}, "1 images cannot be divided"),
        (table_of([0, 1]), {}, "at least one class needs two"),
        (table_of([0] * 9, groups=[1] * 9), {}, "9 images cannot be divided"),
        (table_of([0, 0], splits=["test", "test"]), {}, "no training images"),
        (table_of([0] * 9), {"val": 0.6, "test": 0.4}, "less than 1"),
    ],
)
def test_impossible_splits(table, options, reason):
    with pytest.raises(MiradaError, match=reason):
        make_split(table, **options)


def test_multi_label_and_regression_are_balanced():
    labels = np.zeros((100, 2), np.float32)
    labels[:10, 0] = 1
    labels[:, 1] = np.arange(100) % 2
    table = table_of(labels, task="multi-label")
    split = make_split(table)
    assert [int(table.class_counts(rows)[0]) for rows in (split.train, split.val, split.test)] == [6, 2, 2]
    values = np.random.default_rng(0).normal(size=(200, 1)).astype(np.float32)
    table = table_of(values, task="regression")
    assert np.bincount(strata(table)).tolist() == [20] * 10
    split = make_split(table)
    assert abs(values[split.test].mean() - values.mean()) < 0.1


def test_photos_split_by_strips():
    photos = open_source("photos")
    split = make_split(photos, hashes=row_hashes(photos.pixels))
    sides = sides_of(split, len(photos))
    assert all(len(set(sides[photos.groups == group])) == 1 for group in np.unique(photos.groups))
    assert photos.class_counts(split.test).tolist() == [52, 52]


def test_near_rows():
    base = 0x0123456789ABCDEF
    assert near_rows([base, base ^ 0b111, None, base ^ 0b1111 << 20, 0, 0]) == [(0, 1)]
