"""Sentences with known relations, and heads that are asked for them."""

import json

from benchmarks import jobs, relations
from benchmarks.relations_corpus import ADJECTIVES, DETERMINERS, RELATIONS, RESTING, VERBS, sentences


def test_partners_agree():
    plural = {*VERBS["p"], *RESTING["p"]}
    for made in sentences(200, seed=3):
        for determiner, noun in made.links["determiner to noun"]:
            (form,) = [form for form, words in DETERMINERS.items() if made.words[determiner] in words]
            assert made.words[noun].endswith({"m": "o", "f": "a"}[form[0]] + {"s": "", "p": "s"}[form[1]])
        for adjective, noun in made.links["adjective to noun"]:
            stem = next(stem for stem in ADJECTIVES if made.words[adjective].startswith(stem))
            assert made.words[noun].endswith(made.words[adjective].removeprefix(stem))
        for verb, noun in made.links["verb to subject"]:
            assert (made.words[verb] in plural) == made.words[noun].endswith("s")


def test_partners_are_at_no_fixed_distance():
    for name in RELATIONS:
        distances = {i - j for made in sentences(200, seed=3) for i, j in made.links[name]}
        assert len(distances) >= 2, name


def test_relations_are_tried_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(jobs, "RESULTS", tmp_path / "results")
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: None)
    relations.main(["--try"])
    kept = json.loads((tmp_path / "runs" / "relations-try" / "relations.json").read_text("utf-8"))
    assert [row["relation"] for row in kept["relations"]] == list(RELATIONS)
    assert all(0 <= row["found"] <= 1 and row["links"] > 0 for row in kept["relations"])
    assert not (tmp_path / "results").exists()
    assert "| determiner to noun | layer 0, head" in capsys.readouterr().out
