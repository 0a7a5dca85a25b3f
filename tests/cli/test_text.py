"""The verbs of text on the command line."""

from __future__ import annotations

import json

import pytest

from tests.verbs.text.texts import run, sources


def test_check_tells_what_a_text_holds(mirada):
    ended = mirada("check", sources()["pairs"], "data.task=translate")
    assert ended.exit_code == 0 and "ready to train" in ended.stdout
    found = json.loads(mirada("check", sources()["labels"], "--json").stdout)
    assert found["kind"] == "labelled"


def test_translate_answers_line_by_line(mirada, tmp_path):
    ended = mirada("translate", run("pairs"), "--beam", 1, input="one two\n\nsix\n")
    assert ended.exit_code == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 3 and ended.stdout.splitlines()[1] == ""
    (tmp_path / "in.txt").write_text("one two\n\nsix\n", "utf-8")
    options = ["-o", tmp_path / "out.txt", "--alignments", tmp_path / "out.jsonl", "--beam", 1]
    assert mirada("translate", run("pairs"), tmp_path / "in.txt", *options).exit_code == 0
    assert (tmp_path / "out.txt").read_text("utf-8") == ended.stdout
    looked = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert len(looked) == 3 and looked[1]["weights"] == [] and len(looked[0]["source"]) == 3


def test_translate_gives_scores_and_several_ways(mirada):
    ended = mirada("translate", run("pairs"), "--n-best", 2, "--scores", input="one two three\n")
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    assert len(rows) == 2 and float(rows[0][0]) >= float(rows[1][0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--n-best", 5, "--beam", 2], "n_best=5 with beam=2"),
        (["--penalty", "gnnt"], "length penalty 'gnnt' is unknown"),
    ],
)
def test_impossible_searches_are_refused(mirada, options, said):
    ended = mirada("translate", run("pairs"), *options, input="one\n")
    assert ended.exit_code == 2 and said in ended.stderr


def test_a_file_that_is_no_text_is_refused(mirada, tmp_path):
    (tmp_path / "latin.txt").write_bytes("niño\n".encode("latin-1"))
    ended = mirada("translate", run("pairs"), tmp_path / "latin.txt")
    assert ended.exit_code == 2 and "is not UTF-8 at byte 2" in ended.stderr


def test_generate_writes_on(mirada, tmp_path):
    ended = mirada("generate", run("book"), "one two", "--max-tokens", 12, "--top-p", 0.9)
    assert ended.exit_code == 0 and ended.stdout.startswith("one two")
    assert mirada("generate", run("book"), "-o", tmp_path / "new.txt", "--count", 2).exit_code == 0
    assert (tmp_path / "new.txt").read_text("utf-8")
    assert "temperature" in mirada("generate", run("book"), "--temperature", "nan").stderr


def test_fill_and_neighbours_print_a_table(mirada):
    rows = mirada("fill", run("lines"), "one ___ three", "--top", 3).stdout.splitlines()
    assert len(rows) == 3 and all(len(row.split("\t")) == 4 for row in rows)
    assert len(mirada("neighbours", run("words"), "one", "--top", 2).stdout.splitlines()) == 2
    assert "both --minus and --plus" in mirada("neighbours", run("words"), "one", "--minus", "two").stderr


def test_predict_takes_texts_and_files_of_them(mirada, tmp_path):
    (tmp_path / "in.txt").write_text("five six\none two\n", "utf-8")
    ended = mirada("predict", run("labels"), tmp_path / "in.txt", "-o", tmp_path / "out.csv")
    assert ended.exit_code == 0, ended.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert "six" in mirada("predict", run("labels"), "one six").stdout
