"""The verbs of text on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirada.cli.app import app
from mirada.cli.growing import growing
from mirada.cli.lines import groups_of_stdin
from mirada.errors import MiradaError
from mirada.tasks.translation import Translation, Translator
from tests.verbs.text.texts import run, sources
from tests.verbs.text.tiny_bert import tiny_bert
from tests.verbs.text.tiny_translator import tiny_run

LATIN = "uno\nni\xf1o\ndos\n".encode("latin-1")


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs") / "translator")


@pytest.fixture(scope="module")
def filler(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("runs") / "filler", "fill")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("runs") / "classifier", "single-label")


def told(*texts: str) -> list[Translation]:
    return [Translation(text, -1.0, -1.0, True) for text in texts]


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
        (["--n-best", 5, "--beam", 2], "--n-best 5 with --beam 2"),
        (["--penalty", "gnnt"], "length penalty 'gnnt' is unknown"),
    ],
)
def test_impossible_searches_are_refused_before_a_line_is_waited_for(mirada, translator, monkeypatch, options, said):
    monkeypatch.setattr("mirada.cli.lines.groups_of_stdin", unasked)
    ended = mirada("translate", translator, *options, input="one\n")
    assert ended.exit_code == 2 and said in ended.stderr


def unasked(most):
    raise AssertionError("a line was waited for")


def test_a_file_that_is_no_text_is_refused(mirada, translator, tmp_path):
    (tmp_path / "latin.txt").write_bytes(LATIN)
    ended = mirada("translate", translator, tmp_path / "latin.txt")
    assert ended.exit_code == 2 and "not UTF-8 at byte 6 (0xF1, line 2)" in ended.stderr


@pytest.mark.parametrize("verb", ["translate", "fill", "predict"])
def test_bytes_on_stdin_that_are_no_text_are_refused_with_their_line(verb, translator, filler):
    words = {"translate": [translator, "--beam", 1], "fill": [filler, "-"], "predict": [filler, "-"]}[verb]
    ended = CliRunner().invoke(app, [verb, *map(str, words)], input=LATIN)
    assert ended.exit_code == 2 and "stdin: line 2 is not UTF-8 (0xF1)" in ended.stderr
    assert len(ended.stdout.splitlines()) == (verb == "translate")  # what came before is answered


def test_lines_of_stdin_end_in_line_ends_only(monkeypatch):
    read, write = os.pipe()
    with open(read, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(write, "\ufeffone\u2028two\r\n\nthr".encode())
        groups = groups_of_stdin(5)
        lines = next(groups)  # while the pipe is open
        os.write(write, b"ee")
        os.close(write)
        assert [*lines, *(line for group in groups for line in group)] == ["one\u2028two", "", "three"]


def test_a_stdin_that_cannot_be_read_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(MiradaError, match="stdin: is closed"):
        next(groups_of_stdin(1))
    with open(tmp_path / "to_write", "w") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(MiradaError, match="stdin: cannot be read"):
            next(groups_of_stdin(1))


def test_leaving_while_stdin_is_open_is_no_crash():
    program = "from mirada.cli.lines import groups_of_stdin; print(next(groups_of_stdin(1))); raise SystemExit(3)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout and child.stderr
        child.stdin.write(b"one\n")
        child.stdin.flush()
        assert child.wait(timeout=100) == 3  # not -SIGABRT
        assert child.stdout.read() == b"['one']\n" and child.stderr.read() == b""


def test_every_sentence_has_its_lines(mirada, translator, monkeypatch, tmp_path):
    found = {"a": told("x\ny", "z"), "b": told("w"), "": told("")}
    monkeypatch.setattr(Translator, "translate", lambda self, texts, **how: [found[text] for text in texts])
    ended = mirada("translate", translator, "--n-best", 2, input="a\n\nb\n")
    assert ended.stdout == "x y\nz\n\n\nw\n\n"
    assert mirada("translate", translator, "--n-best", 2, "-o", tmp_path / "o", input="a\n\nb\n").stdout == ""
    assert (tmp_path / "o").read_text() == ended.stdout and [file.name for file in tmp_path.glob("o*")] == ["o"]


def grow(path: Path, lines: list[str], ends: Callable[[], None] = lambda: None) -> None:
    with growing(path) as add:
        for line in lines:
            add(line)
        ends()


def fail() -> None:
    raise MiradaError("no more")


def test_a_file_grows_beside_and_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "out.txt"
    seen: list[str] = []
    grow(path, ["uno", "dós"], lambda: seen.append(path.with_name("out.txt.partial").read_text("utf-8")))
    assert seen == ["uno\ndós\n"] == [path.read_text("utf-8")]
    with pytest.raises(MiradaError, match="no more"):
        grow(path, ["tres"], fail)
    assert path.read_text("utf-8") == "uno\ndós\n" and list(path.parent.iterdir()) == [path]


def test_stopping_a_growing_file_leaves_what_is_finished(tmp_path, capsys):
    partial = tmp_path / "out.txt.partial"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            grow(tmp_path / "out.txt", ["uno"], lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert partial.read_text() == "uno\n" and not (tmp_path / "out.txt").exists()
    assert f"the lines that are finished are in {partial}" in capsys.readouterr().err


def test_a_file_that_cannot_grow_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(MiradaError, match="is a folder"):
        grow(tmp_path, [])
    with pytest.raises(MiradaError, match="cannot be written"):
        grow(tmp_path / "file" / "below", [])


def test_a_line_without_a_blank_does_not_end_the_stream(mirada, filler):
    ended = mirada("fill", filler, "-", "--top", 1, input="one ___\ntwo\n___ six ___\n")
    assert ended.exit_code == 2 and len(ended.stdout.splitlines()) == 3
    assert ended.stderr.startswith("mirada: stdin: line 2: 'two': has no blank") and ended.stderr.count("\n") == 1


def test_predict_keeps_the_row_of_every_line_of_stdin(mirada, classifier, filler):
    Path("notes.txt").write_text("one\ntwo\n", "utf-8")
    ended = mirada("predict", classifier, "-", "-o", "out.jsonl", input="one\n\nnotes.txt\n")
    assert ended.exit_code == 0, ended.stderr
    rows = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert [row["name"] for row in rows] == ["one", "", "notes.txt"] and all(row["predicted"] for row in rows)
    assert "no texts are given" in mirada("predict", classifier, "-", input="").stderr
    ended = mirada("predict", filler, "-", input="one ___\ntwo\n")
    assert "no answer" in ended.stdout and "1 of 2 texts have no answer" in ended.stderr


def test_the_help_of_predict_speaks_of_texts(mirada):
    assert "text per line" in " ".join(mirada("predict", "--help").stdout.replace("│", " ").split())


def test_text_in_8_bits(mirada, translator):
    ended = mirada("generate", run("book"), "one two", "--max-tokens", 12, "--precision", "int8")
    assert ended.exit_code == 0 and ended.stdout.startswith("one two") and not ended.stderr
    ended = mirada("translate", translator, "--precision", "int8", "--beam", 1, input="one\n")
    assert len(ended.stdout.splitlines()) == 1 and "used unchecked" in ended.stderr
    assert "float16" in mirada("translate", translator, "--precision", "float16").stderr


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


def test_a_line_that_is_too_long_is_told_and_does_not_stop_the_others(mirada, translator, tmp_path):
    (tmp_path / "in.txt").write_text("one two\n" * 3 + "six " * 1100 + "\nsix\n", "utf-8")
    ended = mirada("translate", translator, tmp_path / "in.txt", "--batch-size", 2, "--max-length", 5)
    assert ended.exit_code == 2
    assert f"{tmp_path / 'in.txt'}: line 4 has more than 1,024 tokens" in ended.stderr
    lines = ended.stdout.split("\n")
    assert len(lines) == 6 and lines[3] == ""


def test_learned_positions_limit_what_is_read_and_written(mirada, tmp_path):
    run_folder = tiny_run(tmp_path / "learned", position="learned")  # 47 positions
    ended = mirada("translate", run_folder, "--beam", 2, input="one\n" + "six " * 47 + "\n" + "six " * 46 + "\n")
    assert ended.exit_code == 2 and "stdin: line 2 has more than 46 tokens" in ended.stderr
    assert len(ended.stdout.splitlines()) == 3


@pytest.mark.parametrize("verb", ["generate", "translate"])
def test_int8_of_a_run_that_does_something_else_is_refused_in_a_sentence(verb, mirada, classifier):
    ended = mirada(verb, classifier, "--precision", "int8", input="one\n")
    assert ended.exit_code == 2 and "unexpected" not in ended.stderr


def test_alignments_of_a_model_without_attention_are_refused_before_anything_is_said(mirada, tmp_path):
    plain = tiny_run(tmp_path / "plain", system="seq2seq", score="none")
    ended = mirada("translate", plain, "--alignments", tmp_path / "a.jsonl", input="one\n")
    assert ended.exit_code == 2 and "does not attend" in ended.stderr and ended.stdout == ""


def test_what_no_tokeniser_knows_is_still_answered(mirada, translator, filler, classifier):
    strange = "\u4e2d\u6587 \udcff"
    for words in (["fill", filler, f"{strange} ___"], ["predict", classifier, strange]):
        ended = mirada(*words)
        assert ended.exit_code == 0, ended.stderr
    ended = mirada("translate", translator, "--max-length", 5, input="\u4e2d\u6587\n")
    assert ended.exit_code == 0 and len(ended.stdout.splitlines()) == 1


def test_long_texts_are_cut_on_the_terminal(mirada, classifier, tmp_path):
    (tmp_path / "in.txt").write_text("one " * 5000 + "\ntwo\n", "utf-8")
    ended = mirada("predict", classifier, tmp_path / "in.txt")
    assert ended.exit_code == 0 and max(map(len, ended.stdout.splitlines())) < 200
