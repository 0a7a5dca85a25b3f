"""Readings of texts: the numbers are those of Python, step by step too."""

import base64

import numpy as np
import pytest
import torch

import mirada
from mirada.verbs.text.lines import Texts
from mirada.verbs.text.trained import text_run

TEXTS = {"pairs": "one two three", "book": "one two", "lines": "one ___ three", "labels": "one two six"}


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def ask(studio, address, **what):
    answer = studio.post(f"/api/runs/{address}", json=what)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("name", list(TEXTS))
def test_tokens_relevance_and_weights(shared, shared_runs, name):
    (item,) = mirada.explain(shared_runs / name, Texts([TEXTS[name]])).items
    told = ask(shared, f"{name}/readings", text=TEXTS[name])
    assert told["tokens"] == item.tokens and told["source"] == item.source_tokens and told["target"] == item.target
    for one, map in zip(told["maps"], item.relevance, strict=True):
        np.testing.assert_allclose(floats(one["values"]), map.relevance_N, rtol=1e-4, atol=1e-6)
        assert (one["of_target"] is None) == (map.of_target_N is None)
    for number, (one, layer) in enumerate(zip(told["layers"], item.layers, strict=True)):
        assert one["name"] == layer.name and one["labels"] == [list(side) for side in item.labels_of(layer)]
        for head in range(one["shape"][0]):
            answer = shared.get(f"/api/looks/{told['id']}/weights?layer={number}&head={head}").json()
            found = floats(answer["values"]).reshape(answer["shape"])
            np.testing.assert_allclose(found, layer.weights_HNM[head], rtol=1e-5, atol=1e-7)
    assert shared.get(f"/api/looks/{told['id']}/map?method=rollout").status_code == 400


def test_a_translation_has_its_alignment(shared, shared_runs):
    told = ask(shared, "pairs/readings", text="one two three")
    translator = text_run(shared_runs / "pairs").translator
    best = translator.translate(["one two three"])[0][0]
    assert told["translation"]["text"] == best.text and told["translation"]["score"] == pytest.approx(best.score)
    alignment = floats(told["translation"]["alignment"]).reshape(len(told["tokens"]), len(told["source"]))
    expected = translator.alignment("one two three", best.text).weights_NM.numpy()
    np.testing.assert_allclose(alignment, expected, rtol=1e-5)


def test_the_next_token_of_a_text(shared, shared_runs):
    told = ask(shared, "book/next", text="one tw", count=6)
    expected = text_run(shared_runs / "book").writer.next("one tw", 12)
    likely = {one.token: one.probability for one in expected}
    for one in told["top"]:
        assert one["probability"] == pytest.approx(likely[one["token"]], rel=1e-5)
        assert (one["text"].startswith("one tw") and len(one["text"]) == 7) or one["token"] == "[end]"
    assert told["tokens"][:3] == ["o", "n", "e"]
    ask(shared, "book/next", text="")


def test_the_next_token_of_a_translation(shared, shared_runs):
    trained = text_run(shared_runs / "pairs")
    translator = trained.translator
    told = ask(shared, "pairs/next", text="one two", written="uno", count=4)
    read = torch.tensor([[translator.target.start, *translator.target.encode("uno")]])
    with torch.inference_mode():
        share_T = trained.model(translator.read([translator.source.encode("one two")]), read)[0, -1].softmax(-1)
    assert told["tokens"] == ["[start]", "uno"]
    for one in told["top"]:
        token = translator.target.end if one["token"] == "[end]" else translator.target.encode(one["token"])[0]
        assert one["probability"] == pytest.approx(float(share_T[token]), rel=1e-4)
        assert one["text"] == ("uno" if one["token"] == "[end]" else f"uno {one['token']}")


def test_the_first_blank(shared, shared_runs):
    told = ask(shared, "lines/next", text="one ___ three ___", count=3)
    expected = text_run(shared_runs / "lines").filler.fill("one ___ three ___", 3)[0]
    assert [(one["token"], one["probability"]) for one in told["top"]] == [
        (one.token, pytest.approx(one.probability, rel=1e-5)) for one in expected
    ]
    assert told["top"][0]["text"] == f"one {expected[0].token} three ___" and not told["is_end"]


@pytest.mark.parametrize(
    ("address", "what", "status", "said"),
    [
        ("lines/readings", {"text": "one two"}, 400, "has no blank"),
        ("lines/next", {"text": "one two"}, 400, "has no blank"),
        ("labels/next", {"text": "one two"}, 400, "tells classes"),
        ("photos/readings", {"text": "one two"}, 400, "not trained on text"),
        ("photos/next", {"text": "one two"}, 400, "not trained on text"),
        ("pairs/readings", {"text": " "}, 400, "empty"),
        ("pairs/next", {"text": ""}, 400, "empty"),
        ("book/readings", {"text": "one", "at": 99}, 400, "expected a token"),
        ("book/readings", {"text": "one", "method": ["nope"]}, 400, "no method is called"),
        ("book/readings", {"text": "x" * 30_000}, 422, "body.text"),
        ("book/readings", {"text": 3}, 422, "body.text"),
        ("book/readings", {"words": "one"}, 422, "body.text"),
        ("book/next", {"text": "one", "count": 0}, 422, "body.count"),
    ],
)
def test_what_cannot_be_read(shared, address, what, status, said):
    answer = shared.post(f"/api/runs/{address}", json=what)
    assert answer.status_code == status and said in answer.json()["error"], answer.text


def test_a_text_is_never_the_name_of_a_file(shared, tmp_path):
    (tmp_path / "secret.txt").write_text("six six six", "utf-8")
    told = ask(shared, "labels/readings", text=str(tmp_path / "secret.txt"))
    assert "six" not in told["tokens"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"text": NaN}', b'{"text": "\\ud800"}', b"[" * 5000])
def test_malformed_json(shared, body):
    for address in ("runs/book/readings", "runs/book/next", "trainings"):
        answer = shared.post(f"/api/{address}", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422) and list(answer.json()) == ["error"], answer.text
