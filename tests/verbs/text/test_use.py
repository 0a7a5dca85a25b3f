"""What is given to a trained model of text: texts, files of them, and what looks like one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import mirada
from mirada.errors import MiradaError
from mirada.verbs.questions import require_own_data
from mirada.verbs.text.lines import Texts, lines_of, texts_of
from tests.verbs.text.tiny_bert import NUM_WORDS, tiny_bert


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("runs") / "classifier", "single-label")


@pytest.fixture(scope="module")
def filler(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("runs") / "filler", "fill")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_only_line_ends_end_lines(here):
    content = "\ufeffone\u2028two\x0cthree\r\n\nfour\x85five"
    expected = ["one\u2028two\x0cthree", "", "four\x85five"]
    Path("in.txt").write_bytes(content.encode())
    Path("in.txt.gz").write_bytes(gzip.compress(content.encode()))
    assert lines_of("in.txt") == expected and lines_of(Path("in.txt.gz")) == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.txt", "one two\nin.txt\n"),
        ("my in.txt", "one two\nin.txt\n"),
        ("in.csv", 'label,text\nsmall,"one two"\nlarge,in.txt\n'),
        ("in.tsv", "one two\nin.txt\n"),
        ("in.jsonl", '{"text": "one two", "n": 1}\n{"text": "in.txt", "n": 2}\n'),
    ],
)
def test_files_of_texts_are_read_once(name, content, here, classifier):
    Path(name).write_text(content, "utf-8")
    assert texts_of(name) == texts_of(Path(name)) == texts_of([name]) == ["one two", "in.txt"]
    assert [row["name"] for row in mirada.predict(classifier, name)] == ["one two", "in.txt"]
    assert len(mirada.load(classifier).predict(["one", Path(name)])) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing.txt", "missing.txt: there is no such file"),
        ("missing.csv.gz", "there is no such file"),
        (Path("missing"), "there is no such file"),
        ("photo.png", "photo.png: is not a file of texts; give one that ends in .txt"),
        ("folder/", "is not a file of texts"),
        ("empty.txt", "empty.txt: the file is empty"),
        ("pairs.tsv", "cannot tell which of its columns .column1, column2. holds the texts"),
        ([], "no texts are given"),
        (Texts(), "no texts are given"),
        ([3], "give a sentence, a file of texts, or a list of these, not int"),
        (3, "give a sentence, a file of texts, or a list of these, not int"),
    ],
)
def test_what_holds_no_texts_is_refused(given, said, here, classifier):
    Path("photo.png").write_bytes(b"\x89PNG\0")
    Path("folder").mkdir()
    Path("empty.txt").touch()
    Path("pairs.tsv").write_text("one\tuno\ntwo\tdos\n", "utf-8")
    with pytest.raises(MiradaError, match=said):
        mirada.predict(classifier, given)


def test_texts_may_speak_of_files(here):
    Path("notes").touch()
    texts = ["see missing.txt", "notes about it", "", "x" * 5000, "one\ntwo.txt", "folder"]
    assert texts_of(texts) == texts
    assert texts_of(Texts(["notes", "missing.txt"])) == ["notes", "missing.txt"]


def test_no_more_words_are_suggested_than_there_are(filler):
    (ways,) = mirada.fill(filler, "one ___", k=1000)
    assert len(ways) == NUM_WORDS and all(way.probability > 0 for way in ways)
    assert sum(way.probability for way in ways) == pytest.approx(1, abs=1e-5)
    assert "⁇" not in {way.token for way in ways}


def test_a_text_without_a_blank_has_a_row_that_says_so(filler):
    rows = mirada.predict(filler, ["one ___", "", "two"])
    assert [row["error"] is None for row in rows] == [True, False, False] and rows[0].keys() == rows[1].keys()
    assert len(rows[0]["blanks"]) == 1 and "has no blank" in rows[2]["error"]


def test_an_exported_model_of_text_asks_for_texts(classifier):
    with pytest.raises(MiradaError, match="give the texts to evaluate it on"):
        require_own_data(mirada.load(classifier))
