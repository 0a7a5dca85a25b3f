"""A folder for every class, a text in every file."""

from __future__ import annotations

import pytest
from PIL import Image

from mirada.data.text.sources import is_text, open_text
from mirada.errors import MiradaError


@pytest.fixture
def reviews(tmp_path):
    """Six texts of two classes, with what else lies around."""
    for name in ("good", "bad"):
        for number in range(3):
            file = tmp_path / "reviews" / name / f"{number}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"  a {name} film,\nnumber {number}\n")
    (tmp_path / "reviews" / "README.txt").write_text("about")
    (tmp_path / "reviews" / "empty").mkdir()
    return tmp_path / "reviews"


def test_folders_are_classes_and_files_are_texts(reviews):
    assert is_text(reviews)
    table = open_text(reviews)
    assert (table.kind, table.class_names, table.splits) == ("labelled", ("bad", "good"), None)
    assert table.texts[3:5] == ["a good film,\nnumber 0", "a good film,\nnumber 1"]
    assert table.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert table.notes == (f"{reviews}: 6 files are read as texts, and the names of their folders as classes.",)


def test_folders_of_splits(reviews):
    (reviews / "train").mkdir()
    (reviews / "bad").rename(reviews / "train" / "bad")
    (reviews / "good").rename(reviews / "train" / "good")
    (reviews / "test" / "good").mkdir(parents=True)
    (reviews / "test" / "good" / "9.txt").write_text("another")
    table = open_text(reviews, task="classify")
    assert table.splits.tolist() == ["test"] + ["train"] * 6
    assert table.labels.tolist() == [1, 0, 0, 0, 1, 1, 1]


def test_texts_beside_the_folders_are_named(reviews):
    (reviews / "loose.txt").write_text("plain text")
    assert open_text(reviews).notes[0].endswith("as classes, not loose.txt beside them.")
    assert open_text(reviews, task="generate").texts == ["plain text\n"]


def test_empty_texts_are_left_out_and_bad_bytes_are_named(reviews):
    (reviews / "good" / "1.txt").write_text("\n")
    table = open_text(reviews)
    assert (len(table.texts), table.num_empty) == (5, 1)
    assert "first: good/1.txt" in table.notes[-1]
    (reviews / "good" / "2.txt").write_bytes(b"\xff\x00\x80")
    with pytest.raises(MiradaError, match=r"good/2\.txt"):
        open_text(reviews)


def test_one_folder_is_no_class_and_images_are_no_texts(reviews, tmp_path):
    Image.new("RGB", (8, 8)).save(reviews / "good" / "a.png")
    assert not is_text(reviews)
    lone = tmp_path / "lone"
    lone.mkdir()
    (reviews / "bad").rename(lone / "bad")
    assert not is_text(lone)
    with pytest.raises(MiradaError, match=r"expected \.txt files, a folder of them for every class"):
        open_text(lone)
