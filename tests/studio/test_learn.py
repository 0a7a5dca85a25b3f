"""The addresses of the page Learn: what they answer is what Python computes, and limits are said in a sentence."""

from __future__ import annotations

import base64

import numpy as np
import pytest

pytest.importorskip("fastapi")

from fastapi import FastAPI
from fastapi.testclient import TestClient

from mirada.serve.models import Models
from mirada.serve.refusals import answer_failures
from mirada.studio import learn
from mirada.studio.state import Studio
from mirada.verbs.learn import DEMOS, attend, cost


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    app = FastAPI()
    answer_failures(app)
    app.include_router(learn.routes(Studio(tmp_path_factory.mktemp("runs"), Models(1))))
    return TestClient(app)


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_attend_is_what_python_computes(client):
    rules = [{"kind": "window", "reach": 1}, {"kind": "causal"}]
    sent = {"text": "el gato negro", "neighbours": rules, "position": "rotary", "num_heads": 4, "dim": 16, "seed": 3}
    found = client.post("/learn/attend", json=sent).json()
    expected = attend("el gato negro", neighbours=rules, position="rotary", num_heads=4, seed=3)
    assert found["tokens"] == ["el", "gato", "negro"] and found["size"] == [3] and found["num_heads"] == 4
    assert numbers(found["mask"]).reshape(3, 3).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    np.testing.assert_array_equal(numbers(found["weights"]), expected.weights_HNN.flatten().numpy())
    np.testing.assert_array_equal(numbers(found["logits"]), expected.logits_HNN.flatten().numpy())
    assert found["kernel"] == expected.kernel
    assert found["kernels"] == [{"name": one.name, "reason": one.reason} for one in expected.kernels]
    for name in ("num_pairs", "flops_formula", "flops_full"):
        assert found[name] == getattr(expected, name)
    assert client.post("/learn/count", json=sent).json() == {"flops": expected.count_flops()}


def test_cost_of_two_rules_and_of_a_graph(client):
    asked = {"kind": "window", "reach": 2, "also": "causal", "dim": 8}
    expected = cost([{"kind": "window", "reach": 2}, {"kind": "causal"}], dim=8)
    assert client.get("/learn/cost", params=asked).json() == vars(expected)
    graph = client.get("/learn/cost", params={"kind": "edges", "edges": "0-1,1-2", "num_tokens": 4}).json()
    assert graph["pairs"][1] == 2 and graph["lengths"][1] == 4


def test_demos_are_listed_and_run(client):
    listed = client.get("/learn/demos").json()
    assert [demo["name"] for demo in listed] == list(DEMOS)
    by_name = {demo["name"]: demo for demo in listed}
    assert by_name["rotary-sign"]["items"] == ["E33", "C9"]
    assert set(by_name["rotary-sign"]["title"]) == {"en", "es"}
    assert by_name["rotary-sign"]["inputs"][0]["value"] == 0.7
    answer = client.post("/learn/demos/rotary-sign", json={"theta": 0.7}).json()
    assert answer["numbers"][3]["value"] == pytest.approx(0.16997, abs=1e-5)
    assert answer["numbers"][3]["mark"] == "wrong"
    assert {picture["kind"] for picture in answer["pictures"]} == {"matrix", "lines"}
    assert client.post("/learn/demos/rotary-sign").json() == answer


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "Give either a text or a length."),
        ({"text": "a", "length": 2}, "Give either"),
        ({"length": 65}, "less than or equal to 64"),
        ({"text": "a " * 65}, "65 tokens"),
        ({"text": "a", "score": "cosine"}, "the score 'cosine'"),
        ({"text": "a", "dim": 4096}, "less than or equal to 128"),
        ({"text": "a b", "neighbours": [{"kind": "window", "reach": 65}]}, "less than or equal to 64"),
        ({"text": "a b", "neighbours": [{"kind": "window"}]}, "reach of window"),
        ({"text": "a b", "neighbours": [{"kind": "edges", "edges": [[0, 5]]}]}, "leaves the 2 tokens"),
        ({"text": "a", "heads": 3}, "string"),
        ({"text": "a", "colour": "red"}, "extra inputs"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_a_sentence(client, sent, sentence):
    answer = client.post("/learn/attend", json=sent)
    assert answer.status_code == 422 and set(answer.json()) == {"error"}
    assert sentence in answer.json()["error"]


def test_other_refusals(client):
    assert client.post("/learn/demos/nothing").status_code == 404
    assert client.post("/learn/demos/grid", json={"rows": 99}).json()["error"].startswith("rows is 99")
    assert client.post("/learn/demos/grid", json={"rows": 99}).status_code == 422
    for params in ({"kind": "edges", "edges": "0-"}, {"kind": "strided"}, {"kind": "strided", "also": "grid"}):
        assert client.get("/learn/cost", params=params).status_code == 422
    half = client.post("/learn/attend", content=b'{"text": "\\ud800"}', headers={"Content-Type": "application/json"})
    assert half.status_code == 422
