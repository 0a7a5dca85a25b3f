"""The measurements of text are tried out on little data, and what the page says about made-up results."""

import csv
import gzip
import json
import random
import shutil
from itertools import islice
from pathlib import Path

import pytest
import torch
from benchmarks import alignments, decoding, jobs, language, length, page, senses, text_jobs, translation
from benchmarks.senses_corpus import SENSES, WORD, corpus_and_senses, sentences
from benchmarks.text_jobs import Contender, Study
from benchmarks.translation_table import ordering, rows_of

from mirada.train.folder import RunFolder
from mirada.verbs.stages import Watcher
from mirada.verbs.train import plan, what_was_said
from tests.verbs.text.texts import NUMBERS, run, sentence, sources


@pytest.fixture
def data(tmp_path: Path, monkeypatch) -> Path:
    """Small texts with the names of the real ones; results and runs of their own; no report is drawn."""
    texts = tmp_path / "data" / "text"
    texts.mkdir(parents=True)
    generator = random.Random(0)
    for part, count in {"train": 200, "dev": 20, "test": 20}.items():
        pairs = [sentence(generator) for _ in range(count)]
        lines = (f"{' '.join(words)} {part}\t{' '.join(NUMBERS[word] for word in words)}\n" for words in pairs)
        with gzip.open(texts / f"en_es_{part}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("".join(lines))
    for name in ("tinyshakespeare", "quijote"):
        lines = (f"{' '.join(sentence(generator))}, {name}.\n" for _ in range(120))
        (texts / f"{name}.txt").write_text("".join(lines), "utf-8")
    monkeypatch.setattr(jobs, "DATA", tmp_path / "data")
    monkeypatch.setattr(jobs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(jobs, "RESULTS", tmp_path / "results")
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: None)
    return tmp_path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_translation_is_tried_out_and_not_done_twice(data, capsys):
    translation.main(["--try", "--at-once", "1"])
    file = data / "runs" / "translation-try" / "translation.jsonl"
    found = lines_of(file)
    assert [job["contender"] for job in found] == list(translation.SYSTEMS)
    assert all("nrefs" in job["bleu_signature"] and job["bleu_low"] <= job["bleu_high"] for job in found)
    assert found[0]["num_parameters"] > found[1]["num_parameters"]  # the score and its keys
    translation.main(["--try", "--at-once", "1"])
    assert lines_of(file) == found
    assert not (data / "results").exists()
    assert "GRU without attention" in capsys.readouterr().out


def test_a_run_of_another_length_is_replaced(data, monkeypatch):
    contenders = {"one": Contender(sources()["book"], "language", language.TRIED)}
    study = Study("small", "", contenders, lambda run: {}, is_tried=True)
    key = study.key("one", 10, 0)
    study.train_one(key)
    monkeypatch.setattr(text_jobs, "TRIED_STEPS", 3)
    study.train_one(key)
    assert [job["steps"] for job in study.found()] == [2, 3]
    assert study.run_of(key).read_result()["steps"] == 3


def test_minutes_become_steps_once(data, monkeypatch, capsys):
    monkeypatch.setattr(text_jobs, "require_idle", lambda: 0.0)
    monkeypatch.setattr(text_jobs, "ROUNDS", 2)
    contenders = {
        "timed": Contender(sources()["book"], "language", language.TRIED),
        "counted": Contender(sources()["book"], "language", language.TRIED, 7),
    }
    study = Study("small", "", contenders, lambda run: {})
    study.time_steps()
    (entry,) = study.calibrated().values()
    assert len(entry["rounds"]) == 2
    assert study.steps(study.key("timed", 10, 0)) == round(600 / entry["seconds_per_step"])
    assert study.steps(study.key("counted", 10, 0)) == 7
    assert "ms a step" in capsys.readouterr().out
    study.time_steps()
    assert capsys.readouterr().out == ""


def test_language_is_tried_out(data, capsys):
    language.main(["--try", "--at-once", "1"])
    found = {job["contender"]: job for job in lines_of(data / "runs" / "language-try" / "language.jsonl")}
    assert list(found) == ["nanogpt", "preset", "shakespeare", "quijote"]
    for job in found.values():
        assert job["last_tenth_low"] < job["last_tenth"] < job["last_tenth_high"]
        assert job["last_tenth"] == pytest.approx(job["loss"], rel=0.1)
        assert len(job["sample"]) > 0
    assert "quijote" in capsys.readouterr().out


def test_nanogpt_is_as_published(data):
    contender = language.study(False).contenders["nanogpt"]
    config, prepared = plan(what_was_said(contender.source, None, None, contender.settings), "language", Watcher())
    train, system = config.train, config.system.arguments
    assert (train.batch_size, config.text.max_length, contender.steps) == (12, 64, 2000)
    assert (train.learning_rate, train.warmup * 2000, train.betas) == (1e-3, 100, (0.9, 0.99))
    assert [system[name] for name in ("depth", "dim", "num_heads", "dropout")] == [4, 128, 4, 0.0]
    characters = sum(map(len, prepared.table.texts))
    assert sum(map(len, prepared.texts("train"))) == pytest.approx(0.9 * characters, rel=0.02)


def test_alignments_are_of_ten_sentences_and_drawn(data):
    own = shutil.copytree(run("pairs"), data / "run")
    generator = random.Random(3)
    words = [sentence(generator) for _ in range(60)]
    with open(own / "predictions.csv", "w", newline="") as file:
        writer = csv.writer(file)
        rows = ((" ".join(each), " ".join(NUMBERS[word] for word in each)) for each in words)
        writer.writerows([("source", "predicted"), *rows])
    found = alignments.aligned(RunFolder(own))
    assert len(found["sentences"]) == 10
    for each in found["sentences"]:
        assert len(each["weights"]) == len(each["target"]) > 4
        assert all(sum(weights) == pytest.approx(1, abs=0.01) for weights in each["weights"])
    (data / "alignments.json").write_text(json.dumps(found))
    picture, reading = alignments.draw_file(data / "alignments.json", data / "images")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert reading.startswith("Alignments of 10 test sentences. Each word looks most at: ")


def test_length_is_tried_out_and_not_done_twice(data, capsys):
    for _ in range(2):
        length.main(["--try", "--at-once", "1"])
    found = lines_of(data / "runs" / "length-try" / "length.jsonl")
    assert [job["contender"] for job in found] == ["attention", "no attention"]
    assert list(found[0]["rows_right"]) == [str(n) for n in range(2, 31, 2)]
    assert "GRU without attention" in capsys.readouterr().out


def test_only_rows_that_are_reversed_to_the_end_are_right():
    class Reverser:
        """Writes the row backwards, but for its last letters where it is longer than four."""

        pad = length.PAD

        def begin(self, source):
            self.rest = [row[: row.index(length.END)][::-1] for row in source.tolist()]
            return self

        def reorder(self, index):
            self.rest = [list(self.rest[row]) for row in index.tolist()]

        def next_logits(self, read, state):
            first = length.END + 1
            told = [row.pop(0) if row else length.END for row in self.rest]
            told = [first if len(row) < 2 and is_long else token for row, token in zip(self.rest, told, strict=True)]
            return torch.nn.functional.one_hot(torch.tensor(told), first + length.LETTERS).float()[:, None]

    is_long = False
    assert length.accuracy(Reverser(), 4, 9) == (1.0, 1.0)
    is_long = True
    letters, rows = length.accuracy(Reverser(), 4, 50)
    assert 0.45 < letters < 0.7
    assert rows == 0


def test_sentences_to_ask_are_new_and_fair():
    corpus, table = corpus_and_senses(300, 20)
    asked = [line.split("\t") for line in table.splitlines()]
    assert not {text for text, _, _ in asked} & set(corpus.splitlines())
    assert [sum(its == sense.name for _, _, its in asked) for sense in SENSES] == [20, 20, 20]
    assert all(word == WORD and f" el {WORD}" in text for text, word, _ in asked)
    nouns = {noun for _, noun, _ in islice(sentences(0), 300)}
    assert nouns == {WORD, *(noun for sense in SENSES for noun in sense.nouns)}


def test_senses_are_tried_out_and_drawn(data, capsys):
    senses.main(["--try"])
    file = data / "runs" / "senses-try" / "senses.json"
    kept = json.loads(file.read_text())
    assert kept["senses"]["static_accuracy"] == pytest.approx(kept["chance"])
    assert kept["senses"]["n"] == 18
    assert "banco" in capsys.readouterr().out
    picture, _ = senses.draw_file(file, data / "images")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_all_write_the_same_tokens(data, capsys):
    decoding.main(["--try"])
    kept = json.loads((data / "runs" / "decoding-try" / "decoding.json").read_text())
    lengths = decoding.TRIED["marian"]["tiny"]["targets"]
    translating = [f"translating by tiny to {length} tokens, beam 4" for length in lengths]
    assert list(kept["rows"]) == ["writing, batch 1", "writing, batch 8", *translating]
    for row in kept["rows"].values():
        assert {share for name, share in row["same_tokens"].items() if "int8" not in name} == {1.0}
        assert row["faster_than"].keys() == row["same_tokens"].keys() - {"mirada int8"}
        assert row["int8_faster_than"].keys() == row["faster_than"].keys() | {"mirada"}
    said = capsys.readouterr().out
    assert "tokens/s" in said and ("CTranslate2 int8" in said) != ("CTranslate2 is not installed" in said)


def translated(contender: str, seed: int, bleu: float) -> dict:
    scores = {
        f"{name}{end}": bleu + more for name in ("bleu", "chrf") for end, more in (("", 0), ("_low", -1), ("_high", 1))
    }
    facts = {"n": 2000, "search": "beam 4", "majority": 1.25, "bleu_signature": "nrefs:var", "chrf_signature": "nc:6"}
    key = {"contender": contender, "minutes": 10.0, "seed": seed, "settings": "a"}
    return {**key, **scores, **facts, "num_parameters": 1234567, "steps": 4000, "epochs": 7.25}


def test_contenders_are_apart_where_all_their_intervals_are():
    found = [translated("attention", 0, 20), translated("attention", 1, 22), translated("transformer", 0, 24.5)]
    said = ordering([*found, translated("no attention", 0, 10)])
    assert "BLEU: Transformer above GRU with additive attention by 3.5, all intervals apart." in said
    assert "chrF: GRU with additive attention above GRU without attention by 11.0, all intervals apart." in said
    assert "intervals overlap" in ordering([*found, translated("transformer", 1, 22.5)])
    assert rows_of(found)[1]["BLEU by seed"] == "20.0 (19.0–21.0), 22.0 (21.0–23.0)"


def test_text_is_on_the_page_when_there_are_results(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path / "docs")
    empty = page.page()
    assert not (tmp_path / "docs").exists()
    spoken = {
        "contender": "quijote",
        "minutes": 10.0,
        "seed": 0,
        "settings": "b",
        "recipe": "batch 12",
        "tokens_seen": 99,
    }
    spoken |= {"last_tenth": 1.5, "last_tenth_low": 1.4, "last_tenth_high": 1.6, "loss": 1.45, "perplexity": 4.2632}
    spoken |= {"bits_per_character": 2.0919, "sample": "\nEn un lugar\nde la Mancha"}
    shares = {str(n): 1 - n / 100 for n in range(2, 31, 2)}
    counted = {"contender": "no attention", "seed": 0, "steps": 1000, "letters_right": shares, "rows_right": shares}
    told = {"accuracy": 0.99, "static_accuracy": 0.3333, "n": 600, "points": [[0.0, 1.0, "shoal"], [1.0, 0.0, "bench"]]}
    timed = {
        "tokens_per_second": {"mirada": [20.0, 19.0, 21.0], "transformers": [15.0, 14.0, 16.0]},
        "faster_than": {"transformers": [1.33, 1.3, 1.4]},
        "int8_faster_than": {"mirada": [1.95, 1.9, 2.0], "transformers": [2.5, 2.4, 2.6]},
    }
    tied = {**timed, "faster_than": {"transformers": [1.01, 0.9, 1.1]}}
    machine = {"processor": "Abacus", "torch": "2.13"}
    content = {
        "translation.jsonl": translated("attention", 0, 20),
        "language.jsonl": spoken,
        "length.jsonl": counted,
        "senses.json": {"system": "bert:tiny", "lines": 12000, "steps": 9, "chance": 1 / 3, "senses": told},
        "decoding.json": {
            "machine": machine,
            "threads": 2,
            "sizes": decoding.MEASURED,
            "rows": {"a": timed, "b": tied},
        },
    }
    for name, lines in content.items():
        (tmp_path / name).write_text(json.dumps(lines) + "\n")
    text = page.page()
    assert text.startswith(empty.rstrip())
    assert "| GRU with additive attention | 1,234,567 | 0.001 | 4,000 | 7.2 | 20.0 | 20.0 (19.0–21.0) |" in text
    assert "| Don Quijote, preset | batch 12 | 10 | 0 | 99 | 1.500 (1.400–1.600) | 1.450 | 4.26 | 2.092 |" in text
    assert "    En un lugar\n    de la Mancha\n" in text
    assert "94.0 % of the letters (94.0 % of the rows) right at 6 letters, 70.0 % of the letters" in text
    assert "(images/length.png)" in text
    assert "nearest to the right sense in 99.0 % of the sentences" in text
    assert "| a | transformers | 15.0 (14.0–16.0) | 1.33× (1.30–1.40) | 2.50× (2.40–2.60) |" in text
    assert "| b | transformers | 15.0 (14.0–16.0) | tie (0.90–1.10) | 2.50× (2.40–2.60) |" in text
    assert {path.name for path in (tmp_path / "docs" / "images").iterdir()} == {"length.png", "senses.png"}
