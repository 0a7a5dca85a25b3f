"""A look at texts: what is counted, what is warned about, what stops training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirada.data.text.check import Lengths, inspect_text, require_trainable_text
from mirada.data.text.check_render import render_text
from mirada.data.text.oddities import is_misread, is_odd_length, is_untranslated
from mirada.data.text.sources import open_text
from mirada.errors import MiradaError


def opened(folder: Path, name: str, rows: list[tuple[str, ...]] | str, **options):
    content = rows if isinstance(rows, str) else "".join("\t".join(row) + "\n" for row in rows)
    (folder / name).write_text(content, "utf-8")
    return open_text(folder / name, **options)


def test_lengths_of_a_plain_text(tmp_path):
    found = inspect_text(opened(tmp_path, "a.txt", "one\n\n" + "one two\n" * 18 + "one two three\n"))
    assert found.lengths == {"text": Lengths(4 + 1 + 18 * 8 + 14, 9, 1 + 36 + 3, 2, 2, 3)}
    assert (found.num_rows, found.num_empty, found.num_copies) == (21, 1, 0)
    assert found.split_counts == {"all": 21}
    assert found.problems == () and "only 163 characters" in found.warnings[0]


def test_odd_pairs_are_counted_and_named(tmp_path):
    rows = [
        ("Good morning to you.", "Buenos días."),
        ("OK", "OK"),
        ("We will meet again soon", "We will meet again pronto"),
        ("Short.", "Una frase que no tiene nada que ver con la otra, ni de lejos."),
        ("Good morning to you.", "Buenos  días."),
        ("I see the child.", "Veo al niÃ±o."),
        ("Lost\ufffd and\x07 found", "Perdido"),
        ("Empty", ""),
    ]
    found = inspect_text(opened(tmp_path, "p.tsv", rows, task="translate"))
    counts = (found.num_identical, found.num_untranslated, found.num_odd_lengths, found.num_copies, found.num_misread)
    assert counts == (1, 1, 1, 1, 1)
    assert (found.num_odd_characters, found.num_empty) == (2, 1)
    assert found.examples["odd lengths"] == ("p.tsv[3]",) and found.examples["copies"] == ("p.tsv[4]",)
    said = "\n".join(found.warnings)
    for sentence in ("same text on both sides", "in words of the source", "4 times as long", "are copies", "Latin-1"):
        assert sentence in said
    assert "in 1 rows are control, private or replacement" in said and "7 pairs are few" in said
    assert found.problems == ()


def test_leaks_between_given_splits_by_column(tmp_path):
    (tmp_path / "test.tsv").write_text("Hello.\tHola.\nNice.\tBien.\n", "utf-8")
    table = opened(tmp_path, "train.tsv", [("HELLO.", "Buenas."), ("Fine.", "Bien."), ("Good.", "Bien.")])
    found = inspect_text(table)
    assert found.num_leaks == {"source": 1, "target": 1}
    assert found.split_counts == {"train": 3, "val": 0, "test": 2}
    assert "1 texts in source appear in more than one split" in found.warnings[0]


def test_short_lines_that_come_again_are_no_leak(tmp_path):
    (tmp_path / "test.txt").write_text("ROMEO:\nWhat light through yonder window breaks\n", "utf-8")
    table = opened(tmp_path, "train.txt", "ROMEO:\nBut soft\nwhat light through yonder window breaks\n")
    found = inspect_text(table)
    assert found.num_leaks == {"text": 1} and found.num_copies == 1


def test_balance_and_conflicts_of_classes(tmp_path):
    rows = [(f"text number {i}", "big") for i in range(60)] + [("text number 7", "Small"), ("word " * 1_001, "small")]
    found = inspect_text(opened(tmp_path, "l.tsv", [("text", "label"), *rows]))
    assert found.class_counts == {"Small": {"all": 1}, "big": {"all": 60}, "small": {"all": 1}}
    assert (found.num_conflicts, found.num_very_long) == (1, 1)
    said = "\n".join(found.warnings)
    for sentence in (
        "differ only in spelling",
        "fewer than 10 texts",
        "60 times the texts",
        "different labels",
        "long",
    ):
        assert sentence in said


@pytest.mark.parametrize(
    ("name", "rows", "options", "expected"),
    [
        ("a.txt", "aaaa\naaaa\n", {}, "one character again and again"),
        ("a.tsv", [("Hi you.", "Hi you."), ("Bye now.", "Bye now.")], {}, "the same in every row; is one the wrong"),
        ("a.tsv", [("Hi", "x y"), ("Bye", "x y")], {"task": "translate"}, "every target is the same text"),
        ("a.tsv", [("Hi", "x")], {"task": "translate"}, "only one usable row"),
        ("a.tsv", [("text", "label"), ("a b", "x"), ("c d", "x")], {}, r"only one class \('x'\)"),
        ("a.tsv", [("text", "label"), ("a b", "x"), ("c d", "y")], {}, "every class has a single text"),
        ("a.tsv", [("en", "es", "split"), ("a", "b", "dev"), ("c", "d", "test")], {}, "no training rows"),
    ],
)
def test_what_stops_training(tmp_path, name, rows, options, expected):
    table = opened(tmp_path, name, rows, **options)
    found = inspect_text(table)
    with pytest.raises(MiradaError, match=expected) as caught:
        require_trainable_text(table)
    assert str(caught.value) == f"{table.source}: {found.problems[0]}"
    assert "ready to train" not in render_text(found)


def test_texts_to_learn_from_pass(tmp_path):
    require_trainable_text(table := opened(tmp_path, "p.tsv", [("Hi you.", "Hola tú."), ("Bye now.", "Adiós ya.")]))
    assert inspect_text(table).problems == ()


def test_rendered_for_a_terminal(tmp_path):
    (tmp_path / "test.tsv").write_text("text\tlabel\nso bad\tneg\n", "utf-8")
    rows = [("text", "label"), *[(f"very good {i}", "pos") for i in range(3)], ("very bad", "neg"), ("", "neg")]
    found = inspect_text(opened(tmp_path, "train.tsv", rows))
    text = render_text(found)
    assert text.splitlines()[0].endswith("train.tsv: 5 labelled texts")
    assert "split     train 4, val 0, test 1" in text
    assert "median 3, 95 % up to 3, longest 3" in text
    assert "2 classes" in text and "neg       2  " in text
    assert "note: 1 rows with an empty text are left out (first: train.tsv, line 6)." in text
    assert text.endswith("ready to train")
    assert json.loads(json.dumps(found.to_dict()))["lengths"]["text"]["longest"] == 3


@pytest.mark.parametrize(
    ("source", "target", "is_odd"),
    [("", "", False), ("", "a", True), ("a", "", True), ("a" * 5, "b" * 40, False), ("a" * 5, "b" * 41, True)],
)
def test_odd_lengths(source, target, is_odd):
    assert is_odd_length(source, target) == is_odd


def test_untranslated_and_misread():
    assert is_untranslated("Tom and Mary went home", "Tom and Mary went")
    assert not is_untranslated("Tom met Mary", "Tom Mary")
    assert not is_untranslated("Tom and Mary went home", "Tom y Mary se fueron a casa")
    assert is_misread("maÃ±ana") and not is_misread("mañana à Ã la")
