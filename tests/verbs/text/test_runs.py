"""Text through the verbs: every kind of run is trained, judged, loaded and used."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
import torch

import mirada
from mirada.errors import MiradaError
from mirada.train.checkpoint import load_tensors
from mirada.train.stopping import Stopped, StopRequest
from tests.train.test_resume import StopAt
from tests.verbs import trained_run
from tests.verbs.text.texts import SETTINGS, SYSTEMS, run, sources, write_texts

KINDS = tuple(SETTINGS)
METRIC = {"pairs": "bleu", "book": "perplexity", "lines": "perplexity", "labels": "accuracy", "words": "ranking"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_has_its_result_its_tokeniser_and_its_report(kind, tmp_path):
    folder = Path(shutil.copytree(run(kind), tmp_path / "run"))
    mirada.report(folder)  # where the shared run was made by a test that leaves the page out, it has none
    result = json.loads((folder / "result.json").read_text())
    assert result["metric"] == METRIC[kind] and result["low"] <= result["value"] <= result["high"]
    assert math.isfinite(result["majority"]) and result["samples_seen"] > 0
    assert (folder / "tokeniser.json").exists() and (folder / "report.html").stat().st_size > 10_000
    with open(folder / "predictions.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_evaluating_again_gives_the_result_of_the_run(kind, tmp_path):
    own = shutil.copytree(run(kind), tmp_path / "run")
    again = mirada.evaluate(own)
    result = json.loads((own / "result.json").read_text())
    assert again.result["value"] == pytest.approx(result["value"], rel=1e-9)
    assert all(file.exists() for file in again.files)


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_is_as_never_stopped(kind, tmp_path):
    stop = StopRequest()
    out = tmp_path / "stopped"
    with pytest.raises(Stopped):
        mirada.train(
            sources()[kind],
            system=SYSTEMS[kind],
            settings=SETTINGS[kind],
            out=out,
            watcher=StopAt(4, stop),
            stop=stop,
        )
    mirada.resume(out)
    ended, whole = (load_tensors(folder / "best" / "model.safetensors") for folder in (out, run(kind)))
    assert ended.keys() == whole.keys() and all(torch.equal(ended[name], whole[name]) for name in ended)
    assert (out / "predictions.csv").read_text() == (run(kind) / "predictions.csv").read_text()


def test_translate_gives_the_best_ways_and_where_it_looked():
    found = mirada.translate(run("pairs"), ["one two", "", "six"], beam=3, n_best=2)
    assert [len(ways) for ways in found] == [2, 1, 2] and found[1][0].text == ""
    assert found[0][0].score >= found[0][1].score
    alone = mirada.translate(run("pairs"), "one two", beam=3)[0][0]
    assert alone.text == found[0][0].text and alone.score == pytest.approx(found[0][0].score, rel=1e-5)
    alignment = mirada.load(run("pairs")).translator.alignment("one two", "uno dos tres")
    assert alignment.weights_NM.shape == (4, 3)
    assert torch.allclose(alignment.weights_NM.sum(1), torch.ones(4))
    assert len(alignment.moses().split()) == 4


def test_other_sentences_are_measured_too(tmp_path):
    (tmp_path / "other.tsv").write_text("one six\tuno seis\ntwo five one\tdos cinco uno\n", "utf-8")
    own = shutil.copytree(run("pairs"), tmp_path / "run")
    result = mirada.evaluate(own, tmp_path / "other.tsv", settings=["data.task=translate"]).result
    assert result["n"] == 2 and "nrefs" in result["bleu_signature"]


def test_generate_is_the_same_for_the_same_seed_and_goes_beyond_what_is_seen_at_once():
    how = {"count": 4, "max_tokens": 40}
    first, second = (mirada.generate_text(run("book"), "one", **how, seed=3) for _ in range(2))
    # The model sees 16 at once, and each text may end by itself.
    assert first == second and 16 < max(map(len, first)) <= 40
    assert mirada.generate_text(run("book"), "one", **how, seed=4) != first
    assert len(mirada.generate_text(run("book"), count=3, max_tokens=5)) == 3
    writer = mirada.load(run("book")).writer
    streamed = "".join(writer.stream("one", max_tokens=40, draw=None))
    assert streamed == writer.write("one", max_tokens=40)[0]
    likely = writer.next("one two", k=3)
    assert len(likely) == 3 and likely[0].probability >= likely[-1].probability > 0


def test_fill_answers_every_blank():
    found = mirada.fill(run("lines"), "one ___ three [MASK].", k=3)
    assert [len(ways) for ways in found] == [3, 3]
    assert all(ways[0].probability >= ways[-1].probability for ways in found)
    assert found[0][0].text.startswith("one ") and found[0][0].token in found[0][0].text
    with pytest.raises(MiradaError, match="has no blank"):
        mirada.fill(run("lines"), "nothing is missing")


def test_classes_of_texts_are_told_and_word_counts_stand_beside():
    answers = mirada.load(run("labels")).predict(["five six", "one"])
    assert {answer["predicted"] for answer in answers} <= {"has six", "no six"} and len(answers) == 2
    result = json.loads((run("labels") / "result.json").read_text())
    assert 0.9 < result["word_counts"]["accuracy"] <= 1  # the rule is a word: counting words is enough


def test_words_have_neighbours():
    trained = mirada.load(run("words"))
    found = trained.neighbours("one", 3)
    assert len(found) == 3 and "one" not in dict(found) and all(-1.001 <= cosine <= 1.001 for _, cosine in found)
    assert len(trained.analogy("one", "two", "three", 2)) == 2
    with pytest.raises(MiradaError, match="no word of the"):
        trained.neighbours("zzz")


def test_a_model_says_what_it_is_for():
    with pytest.raises(MiradaError, match="goes on writing: use `mirada generate`"):
        mirada.translate(run("book"), "one")
    with pytest.raises(MiradaError, match="was not trained on text"):
        mirada.translate(trained_run.run(), "one")


@pytest.mark.parametrize(
    ("settings", "system", "said"),
    [
        (["augment.strength=strong"], None, "'augment.strength' is for images"),
        (["data.task=translate"], None, "the table has one column"),
        ([], "vit", "takes images, but"),
        ([], "transformer", "takes pairs of sentences, but"),
        (["text.max_length=100000"], None, "tokens"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(settings, system, said, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(MiradaError, match=said):
        mirada.train(sources()["book"], system=system, settings=[*settings, "train.steps=1"], out=out)
    assert not (out / "best").exists()


def test_vocabularies_may_be_separate(tmp_path):
    settings = [*SETTINGS["pairs"], "text.shared=false", "train.steps=2"]
    out = mirada.train(sources()["pairs"], system="seq2seq", settings=_without_heads(settings), out=tmp_path / "r").path
    assert (out / "target_tokeniser.json").exists()
    trained = mirada.load(out)
    assert trained.tokeniser.encode("one") and trained.target_tokeniser.decode(trained.target_tokeniser.encode("uno"))
    assert len(mirada.translate(out, ["one two"])) == 1


def _without_heads(settings: list[str]) -> list[str]:
    return [setting for setting in settings if "num_heads" not in setting]


@pytest.mark.long
def test_senses_are_told_apart_in_context_only(tmp_path):
    lines = [f"{word} six\tsix\tafter {word}" for word in ("one", "two") for _ in range(6)]
    (tmp_path / "senses.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    settings = [*SETTINGS["lines"], f"text.senses={tmp_path / 'senses.tsv'}", "train.steps=2"]
    out = mirada.train(sources()["lines"], system="bert", settings=settings, out=tmp_path / "run").path
    told = json.loads((out / "result.json").read_text())["senses"]["six"]
    assert told["accuracy"] == 1 and told["static_accuracy"] == 0.5 and told["n"] == 12


@pytest.mark.parametrize("kind", ["book", "lines", "labels", "words"])
def test_other_texts_are_measured_against_what_the_run_had_seen(kind, tmp_path):
    own = shutil.copytree(run(kind), tmp_path / "run")
    other = write_texts(tmp_path, seed=1)[kind]
    found = mirada.evaluate(own, other)
    assert math.isfinite(found.result["value"]) and math.isfinite(found.result["majority"]) and found.rows


@pytest.mark.long
def test_a_table_of_the_other_direction_is_turned_round(tmp_path):
    (tmp_path / "train.tsv").write_text("es\ten\n" + _turned(sources()["pairs"].read_text("utf-8")), "utf-8")
    out = mirada.train(
        tmp_path / "train.tsv", system="transformer", settings=SETTINGS["pairs"], out=tmp_path / "r"
    ).path
    (tmp_path / "other.tsv").write_text("en\tes\none six\tuno seis\ntwo five one\tdos cinco uno\n", "utf-8")
    rows = mirada.evaluate(out, tmp_path / "other.tsv", settings=["data.task=translate"]).rows
    assert [row["source"] for row in rows] == ["uno seis", "dos cinco uno"]


def _turned(pairs: str) -> str:
    return "".join("\t".join(reversed(line.split("\t"))) + "\n" for line in pairs.splitlines())


@pytest.mark.parametrize(
    ("kind", "system", "settings", "said"),
    [
        ("book", "bert", ["data.task=generate"], "system 'bert' cannot learn to generate; use gpt"),
        ("book", "word2vec", ["data.task=fill"], "system 'word2vec' cannot learn to fill; use bert"),
        ("book", "gpt", ["train.choose_by=metric"], r"train\.choose_by=metric is for classes"),
        ("lines", "bert", ["text.senses=absent.tsv", "data.task=fill"], r"text\.senses absent\.tsv: cannot be read"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_training(kind, system, settings, said, tmp_path):
    with pytest.raises(MiradaError, match=said):
        mirada.train(sources()[kind], system=system, settings=[*settings, "train.steps=1"], out=tmp_path / "run")


def test_a_side_with_nothing_to_ask_is_refused(tmp_path):
    (tmp_path / "tiny.txt").write_text("a" * 100 + "\n\n" + "b" * 40 + "\n", "utf-8")
    with pytest.raises(MiradaError, match="its val part has nothing to ask about"):
        mirada.train(tmp_path / "tiny.txt", settings=["train.steps=1", "text.max_length=8"], out=tmp_path / "run")


def test_a_source_that_is_no_sentence_is_refused_by_its_number():
    with pytest.raises(MiradaError, match=r"text 2 of 2 has 2,000 tokens, expected at most 1,024"):
        mirada.translate(run("pairs"), ["one", "two " * 2000])


def test_texts_without_words_are_classified_without_word_counts(tmp_path):
    rows = [f"{('☺' if n % 2 else '☹') * n},{'glad' if n % 2 else 'sad'}" for n in range(1, 61)]
    (tmp_path / "faces.csv").write_text("text,label\n" + "\n".join(rows) + "\n", "utf-8")
    settings = [*SETTINGS["labels"], "text.tokeniser=character", "train.steps=2", "data.task=classify"]
    out = mirada.train(tmp_path / "faces.csv", system="bert", settings=settings, out=tmp_path / "run").path
    assert "word_counts" not in json.loads((out / "result.json").read_text())
