"""Texts over HTTP: the numbers of the verbs, and no text is the name of a file."""

import numpy as np
import pytest

import mirada
from mirada.verbs.generate import generate_text
from tests.serve.untrained import words_run, writing_run
from tests.verbs.text.tiny_bert import tiny_bert
from tests.verbs.text.tiny_translator import tiny_run

TEXTS = ["one two three", "six", "one one " * 6]


def relevance_equals(explained: dict, numbers: list[dict]) -> bool:
    return all(
        found["tokens"] == expected["tokens"]
        and all(
            np.allclose(entry["relevance"], expected["maps"][method]["relevance"], atol=1e-6)
            for method, entry in found["maps"].items()
        )
        for found, expected in zip(explained["explanations"], numbers, strict=True)
    )


def test_classes(served, tmp_path):
    run = tiny_bert(tmp_path / "run", "single-label")
    client = served(run)
    found = client.post("/predict", json={"texts": TEXTS}).json()["answers"]
    for answer, expected in zip(found, mirada.load(run).predict(TEXTS), strict=True):
        assert answer["predicted"] == expected["predicted"]
        assert answer["probabilities"]["large"] == pytest.approx(expected["p_large"], abs=2e-6)
    explained = client.post("/explain", json={"texts": TEXTS[:2]}).json()
    assert relevance_equals(explained, mirada.explain(run, TEXTS[:2]).numbers())
    assert client.post("/explain?target=small&method=rollout", json={"texts": ["two"]}).json()["explanations"]
    drawn = client.post("/explain?format=png", json={"texts": ["one two"]})
    assert drawn.status_code == 200 and drawn.content.startswith(b"\x89PNG")


def test_a_text_is_never_the_name_of_a_file(served, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tiny_bert(tmp_path / "run", "single-label")
    (tmp_path / "in.txt").write_text("one\ntwo\n", "utf-8")
    client = served(run)
    assert len(client.post("/predict", json={"texts": ["in.txt"]}).json()["answers"]) == 1
    assert len(client.post("/explain", json={"texts": ["in.txt"]}).json()["explanations"]) == 1


def test_translations(served, tmp_path):
    run = tiny_run(tmp_path / "run", num_steps=40)  # it has learned to end
    client = served(run)
    found = client.post("/predict", json={"texts": TEXTS[:2]}).json()["answers"]
    for answer, expected in zip(found, mirada.load(run).predict(TEXTS[:2]), strict=True):
        assert answer["text"] == expected["text"] and answer["score"] == pytest.approx(expected["score"], abs=1e-5)
    greedy = client.post("/predict", json={"texts": TEXTS[:1], "beam": 1}).json()["answers"][0]
    assert greedy["text"] == mirada.load(run).translator.translate(TEXTS[:1], beam=1)[0][0].text
    assert relevance_equals(
        client.post("/explain", json={"texts": ["one two"]}).json(), mirada.explain(run, "one two").numbers()
    )


def test_blanks(served, tmp_path):
    run = tiny_bert(tmp_path / "run", "fill")
    client = served(run)
    found = client.post("/predict", json={"texts": ["one ___ two", "[MASK]"]}).json()["answers"]
    for answer, expected in zip(found, mirada.load(run).predict(["one ___ two", "[MASK]"]), strict=True):
        for filled, words in zip(answer["blanks"][0], expected["blanks"][0], strict=True):
            assert filled["token"] == words["token"] and filled["text"] == words["text"]
            assert filled["probability"] == pytest.approx(words["probability"], abs=1e-6)
    refused = client.post("/predict", json={"texts": ["no blank"]})
    assert refused.status_code == 422 and refused.json()["error"].startswith("body.texts.0")
    assert client.post("/explain", json={"texts": ["one ___"]}).status_code == 200


def test_continuations(served, tmp_path):
    run = writing_run(tmp_path / "run")
    client = served(run, tokens=40)
    how = {"max_tokens": 30, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "seed": 3}
    found = client.post("/predict", json={"texts": ["one t", "x"], **how}).json()["answers"]
    assert [answer["text"] for answer in found] == [generate_text(run, text, **how)[0] for text in ("one t", "x")]
    assert relevance_equals(
        client.post("/explain", json={"texts": ["one"]}).json(), mirada.explain(run, "one").numbers()
    )
    assert client.post("/predict", json={"texts": ["one"], "max_tokens": 41}).status_code == 422
    assert client.post("/predict", json={"texts": ["one"], "temperature": -1}).status_code == 422
    over = client.post("/predict", json={"texts": ["ok", "o" * 41]})
    assert over.status_code == 413 and over.json()["error"].startswith("texts[1] has 41 tokens")


def test_neighbours(served, tmp_path):
    run = words_run(tmp_path / "run")
    client = served(run)
    found = client.post("/predict", json={"texts": ["six"], "k": 3}).json()["answers"][0]["neighbours"]
    expected = mirada.load(run).neighbours("six", 3)
    assert [(near["word"], near["cosine"]) for near in found] == [(word, pytest.approx(c)) for word, c in expected]
    assert client.post("/predict", json={"texts": ["elephant"]}).status_code == 404
    assert client.post("/explain", json={"texts": ["six"]}).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"one"',
        b'{"texts": "one"}',
        b'{"texts": []}',
        b'{"texts": [1]}',
        b'{"texts": [""]}',
        b'{"texts": ["\\ud800"]}',
        b'{"texts": ["one"], "\\ud800": 1}',
        b'{"texts": ["one"], "more": NaN}',
        b"\xff\xfe",
        b'{"texts": ' + b"[" * 100_000,
        b'{"texts": [' + b"1" * 5000 + b"]}",
        b'{"texts": ["' + b"o" * 101 + b'"]}',
    ],
)
def test_bodies_that_are_none_get_one_sentence(body, served, tmp_path):
    client = served(tiny_bert(tmp_path / "run", "single-label"), characters=100)
    answer = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"] and "Traceback" not in answer.text and len(answer.text) < 600
