"""Looks into images: the numbers are those of Python, and what is hostile is refused in a sentence."""

import base64
import io
import struct
import zlib

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

import mirada
from mirada.core import record
from mirada.errors import MiradaError
from mirada.explain.methods import METHODS
from mirada.studio.app import create_app
from mirada.studio.kept import KeptLooks
from mirada.train.folder import RunFolder

pytestmark = pytest.mark.xdist_group("looks")  # what its tests share is made once


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


def png(size=(8, 8), seed=0) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def look(studio, content=None, **form):
    files = None if content is None else {"image": ("<b>cat</b>.png", content)}
    return studio.post("/api/runs/photos/looks", data=form, files=files)


@pytest.fixture(scope="module")
def held_out(shared):
    answer = look(shared, held_out="2")
    assert answer.status_code == 200, answer.text
    return answer.json()


def recorded(run, path):
    trained = mirada.load(run)
    pixels = np.asarray(Image.open(path)).transpose(2, 0, 1).copy()
    with torch.inference_mode(), record(trained.model.eval()) as maps:
        trained.model(trained.normalisation.apply(torch.from_numpy(pixels)[None]))
    return [maps[name][0].numpy() for name in maps]


def test_answers_maps_and_strips_are_those_of_python(held_out, shared_runs):
    (item,) = mirada.explain(shared_runs / "photos", held_out["name"]).items
    assert held_out["answers"] == [[name, pytest.approx(share, rel=1e-5)] for name, share in item.answers]
    assert held_out["target"] == item.target and held_out["classes"] == ["bright", "dark", "grey"]
    assert [map["method"] for map in held_out["maps"]] == [map.method for map in item.maps]
    for told, map in zip(held_out["maps"], item.maps, strict=True):
        assert tuple(told["grid"]) == map.relevance_RC.shape
        np.testing.assert_allclose(floats(told["values"]), map.relevance_RC.ravel(), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(floats(told["strip"]["deletion"]), map.faithfulness.deletion, rtol=1e-5)
        assert told["strip"]["verdict"] == map.faithfulness.verdict
    assert [method["name"] for method in held_out["methods"]] == list(METHODS)
    picture = Image.open(io.BytesIO(base64.b64decode(held_out["picture"].partition(",")[2])))
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(Image.open(held_out["name"])))
    assert held_out["command"].startswith(f"mirada explain {shared_runs / 'photos'} {held_out['name']}")


@pytest.mark.parametrize("max_whole", [2**30, 0])
def test_weights_of_any_token_and_head_are_exact(shared_runs, held_out, max_whole):
    """Whether they are kept, or computed again."""
    app = create_app(shared_runs)
    app.state.studio.looks.max_whole = max_whole
    studio = TestClient(app)
    told = look(studio, held_out="2", method="rollout", faithfulness="false").json()
    expected = recorded(shared_runs / "photos", held_out["name"])
    assert [layer["shape"] for layer in told["layers"]] == [list(weights.shape) for weights in expected]
    for number, weights_HNM in enumerate(expected):
        heads, queries, keys = weights_HNM.shape
        for what, at, axis in (("query", queries - 1, 1), ("key", keys - 1, 2), ("head", heads - 1, 0)):
            answer = studio.get(f"/api/looks/{told['id']}/weights?layer={number}&{what}={at}").json()
            found = floats(answer["values"]).reshape(answer["shape"])
            np.testing.assert_allclose(found, weights_HNM.take(at, axis), rtol=1e-6, atol=1e-8)


def test_further_maps(shared, shared_runs, held_out):
    address = f"/api/looks/{held_out['id']}/map"
    asked = {"method": "attention", "layer": 0, "head": 1, "at": (0, 1), "faithfulness": False}
    (item,) = mirada.explain(shared_runs / "photos", held_out["name"], **asked).items
    told = shared.get(f"{address}?method=attention&layer=0&head=1&at=0,1").json()
    np.testing.assert_allclose(floats(told["values"]), item.maps[0].relevance_RC.ravel(), rtol=1e-5, atol=1e-7)
    assert told["strip"] is None
    (item,) = mirada.explain(
        shared_runs / "photos", held_out["name"], method="occlusion", target="dark", faithfulness=False
    ).items
    told = shared.get(f"{address}?method=occlusion&target=dark&faithfulness=false").json()
    np.testing.assert_allclose(floats(told["values"]), item.maps[0].relevance_RC.ravel(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("question", "status", "said"),
    [
        ("map?method=nope", 400, "no method is called"),
        ("map?method=chefer&at=0,1", 400, "use attention or rollout"),
        ("map?method=attention&at=9,9", 400, "no token"),
        ("map?method=chefer&target=cat", 400, "is no class"),
        ("map", 422, "query.method"),
        ("map?method=attention&at=1", 422, "query.at"),
        ("weights?layer=99&query=0", 400, "layer 99"),
        ("weights?layer=0&query=16", 400, "query 16"),
        ("weights?layer=0", 400, "give one of"),
        ("weights?layer=0&query=1&key=1", 400, "give one of"),
        ("weights?layer=-1&query=1", 422, "query.layer"),
    ],
)
def test_questions_without_an_answer(shared, held_out, question, status, said):
    answer = shared.get(f"/api/looks/{held_out['id']}/{question}")
    assert answer.status_code == status and said in answer.json()["error"]


def test_ids_are_not_guessed_and_old_ones_are_forgotten(shared, shared_runs, held_out):
    assert len(held_out["id"]) >= 20
    for name in ("1", "..", "%2e%2e", held_out["id"][:-1]):
        assert shared.get(f"/api/looks/{name}/weights?layer=0&head=0").status_code == 404
    looks = KeptLooks(max_bytes=1)
    run = RunFolder(shared_runs / "photos")
    kept = shared.app.state.studio.looks.get(held_out["id"])
    first, second = looks.add(run, kept.looked), looks.add(run, kept.looked)
    assert looks.get(second).looked.item.name == held_out["name"]
    with pytest.raises(MiradaError, match="look at it again"):
        looks.get(first)


def test_a_model_that_was_trained_on_is_not_mixed_with_the_old_one(studio, own_runs):
    told = look(studio, png(), method="rollout", faithfulness="false").json()
    weights = own_runs / "photos" / "best" / "model.safetensors"
    weights.write_bytes(weights.read_bytes())
    answer = studio.get(f"/api/looks/{told['id']}/weights?layer=0&head=0")
    assert answer.status_code == 409 and "look at this input again" in answer.json()["error"]


def test_masks_are_looked_at(shared):
    told = shared.post("/api/runs/shapes/looks", data={"held_out": "0", "method": "chefer"})
    assert told.status_code == 200 and told.json()["maps"][0]["strip"] is None
    assert told.json()["size"] == [24, 32]


def bomb() -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )


def test_hostile_uploads_are_refused_in_a_sentence(shared, shared_runs):
    before = {path: path.stat().st_mtime_ns for path in shared_runs.parent.rglob("*")}
    for content in (b"", b"no image", bomb(), png()[:60], b"GIF89a" + bytes(20), b"<svg onload=alert(1)>"):
        answer = look(shared, content)
        assert answer.status_code in (400, 413, 415), (content[:20], answer.text)
        assert list(answer.json()) == ["error"] and "Traceback" not in answer.text
    polyglot = look(shared, png() + b"PK\x03\x04<script>alert(1)</script>", method="rollout", faithfulness="false")
    assert polyglot.status_code == 200 and polyglot.json()["name"] == "b>.png" and "script" not in polyglot.text
    assert look(shared, bytes(40 * 2**20)).status_code == 413
    assert look(shared).status_code == look(shared, png(), held_out="1").status_code == 422
    assert look(shared, held_out="99999").status_code == 400
    assert look(shared, png(), target="cat").status_code == 400
    assert {path: path.stat().st_mtime_ns for path in shared_runs.parent.rglob("*")} == before


def test_texts_are_not_looked_at_as_images(shared):
    answer = shared.post("/api/runs/book/looks", files={"image": ("a.png", png())})
    assert answer.status_code == 400 and "trained on text" in answer.json()["error"]
