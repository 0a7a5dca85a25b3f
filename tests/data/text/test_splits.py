"""Splits of texts: given ones are kept, new ones do not leak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mirada.data.splits import Split
from mirada.data.text.oddities import same_text
from mirada.data.text.rows import references_of
from mirada.data.text.split import split_text, units_of
from mirada.data.text.table import TextTable
from mirada.errors import MiradaError


def plain(texts: list[str], splits: list[str] | None = None) -> TextTable:
    return TextTable("a.txt", "plain", texts, splits=None if splits is None else np.array(splits))


def pairs(rows: list[tuple[str, str]], splits: list[str] | None = None) -> TextTable:
    texts, targets = ([row[side] for row in rows] for side in (0, 1))
    return TextTable(
        "a.tsv",
        "pairs",
        texts,
        targets=targets,
        references=references_of(texts, targets, splits),
        splits=None if splits is None else np.array(splits),
        source_name="en",
        target_name="es",
    )


def labelled(texts: list[str], labels: list[int], class_names=("neg", "pos")) -> TextTable:
    return TextTable("a.csv", "labelled", texts, labels=np.array(labels), class_names=class_names, target_name="label")


def sides_of(split: Split, num_rows: int) -> np.ndarray:
    sides = np.full(num_rows, -1)
    for number, name in enumerate(("train", "val", "test")):
        assert (sides[split.rows(name)] == -1).all()
        sides[split.rows(name)] = number
    assert (sides >= 0).all()
    return sides


def test_plain_text_is_divided_by_characters_and_in_order():
    table = plain(["x" * 79 + "\n", *["y\n"] * 60])  # 80 characters and 60 times 2
    split = split_text(table, val=0.2, test=0.1, seed=3)
    assert split.how == "contiguous"
    assert sides_of(split, 61).tolist() == [0] * 31 + [1] * 20 + [2] * 10
    assert split.checksum() == split_text(table, val=0.2, test=0.1, seed=4).checksum()


def test_without_a_test_side_the_end_of_the_text_is_val():
    split = split_text(plain(["ab\n"] * 10), val=0.1, test=0.0, seed=0)
    assert (split.val.tolist(), split.test.tolist()) == ([9], [])
    assert "no test side" in split.notes[0]


def test_pairs_that_share_a_sentence_stay_together():
    generator = np.random.default_rng(5)
    rows = [(f"source {generator.integers(400)}", f"target {generator.integers(2_000)}") for _ in range(997)]
    rows += [(text.upper(), target + " ") for text, target in rows[:50]]
    table = pairs(rows)
    split = split_text(table, val=0.1, test=0.15, seed=1)
    sides = sides_of(split, len(table))
    for column in table.sides.values():
        side_of: dict[str, int] = {}
        assert all(side_of.setdefault(same_text(text), side) == side for text, side in zip(column, sides, strict=True))
    assert len(split.val) == pytest.approx(0.1 * len(rows), abs=15)
    assert len(split.test) == pytest.approx(0.15 * len(rows), abs=15)
    assert split.how == "grouped"


def test_sentences_with_many_translations_are_tested_too():
    rows = [(f"source {i // 3}", f"target {i}") for i in range(300)] + [(f"alone {i}", f"solo {i}") for i in range(300)]
    split = split_text(pairs(rows), val=0.2, test=0.2, seed=0)
    several = [sum(row < 300 for row in split.rows(name)) / len(split.rows(name)) for name in ("train", "val", "test")]
    assert several == pytest.approx([0.5] * 3, abs=0.15)


def test_a_sentence_that_makes_up_most_of_the_data_is_trained_on():
    rows = [("yes", f"sí {i}") for i in range(80)] + [(f"source {i}", f"target {i}") for i in range(40)]
    split = split_text(pairs(rows), val=0.1, test=0.1, seed=2)
    assert set(range(80)) <= set(split.train.tolist())
    assert len(split.val) == len(split.test) == 12


def test_units_link_through_both_sides():
    assert units_of(pairs([("a", "x"), ("b", "x"), ("B ", "y"), ("c", "z")])).tolist() == [0, 0, 0, 1]


def test_seed_decides_the_split_of_pairs():
    table = pairs([(f"s{i}", f"t{i}") for i in range(50)])
    checksums = [split_text(table, val=0.2, test=0.2, seed=seed).checksum() for seed in (0, 0, 1)]
    assert checksums[0] == checksums[1] != checksums[2]


def test_labelled_texts_are_stratified_and_copies_stay_together():
    texts = [f"text {i}" for i in range(90)] + ["the same"] * 7 + ["The  same"] * 3
    labels = [0] * 60 + [1] * 40
    split = split_text(labelled(texts, labels), val=0.1, test=0.2, seed=0)
    sides = sides_of(split, 100)
    assert len(set(sides[90:].tolist())) == 1
    assert [(sides[:60] == side).sum() for side in (0, 1, 2)] == [42, 6, 12]
    assert split.how == "stratified"


def test_a_class_too_rare_to_be_tested_is_named():
    table = labelled([f"text {i}" for i in range(21)], [0] * 20 + [1], ("common", "rare"))
    assert "rare" in split_text(table, val=0.1, test=0.1, seed=0).notes[0]


def test_given_splits_are_kept():
    given = ["train", "test", "val", "train"]
    split = split_text(pairs([("a", "b"), ("c", "d"), ("e", "f"), ("a", "g")], given), val=0.5, test=0.4, seed=0)
    assert sides_of(split, 4).tolist() == [0, 2, 1, 0]
    assert (split.how, split.notes) == ("given", ())


def test_a_missing_val_is_the_end_of_a_training_text_and_a_missing_test_is_said():
    table = plain(["ab\n"] * 20, ["train"] * 20)
    split = split_text(table, val=0.1, test=0.1, seed=0)
    assert (split.val.tolist(), len(split.test)) == ([18, 19], 0)
    assert "2 were taken out of train" in split.notes[0] and "no test rows" in split.notes[1]


@pytest.mark.parametrize(
    ("table", "shares", "expected"),
    [
        (plain(["one line\n"]), (0.1, 0.1), "1 rows are too few"),
        (pairs([("a", "b"), ("c", "d")]), (0.1, 0.1), "2 rows are too few .* different texts"),
        (labelled(["same"] * 9, [0, 1, 0] * 3), (0.1, 0.1), "9 rows are too few"),
        (plain(["a\n"] * 9, ["test"] * 9), (0.1, 0.1), "no training rows"),
        (plain(["a\n"] * 9), (0.0, 0.1), "val=0.0 and test=0.1"),
        (plain(["a\n"] * 9), (0.5, 0.5), "val=0.5 and test=0.5"),
    ],
)
def test_what_cannot_be_divided_is_said(table, shares, expected):
    with pytest.raises(MiradaError, match=expected):
        split_text(table, val=shares[0], test=shares[1], seed=0)


def test_a_real_corpus_without_leaks(real_data):
    from mirada.data.text.check import inspect_text
    from mirada.data.text.sources import open_text

    table = open_text(real_data("text/en_es_test.tsv.gz"))
    split = split_text(table, val=0.1, test=0.1, seed=0)
    names = np.array(["train", "val", "test"])[sides_of(split, len(table))]
    assert inspect_text(replace(table, splits=names)).num_leaks == {"en": 0, "es": 0}
