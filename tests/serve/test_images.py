"""Images over HTTP: the numbers of the verbs, whoever asks at the same time."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

import mirada
from tests.serve.untrained import SCRIPT, image_run, mask_run, picture


def files(*contents: bytes) -> list:
    return [("image", (f"{number}.png", content)) for number, content in enumerate(contents)]


def saved(tmp_path, *contents: bytes) -> list[str]:
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.png").write_bytes(content)
    return [str(tmp_path / f"{number}.png") for number in range(len(contents))]


def test_classes_are_those_of_predict(run, served, tmp_path):
    contents = [picture(0), picture(1, (61, 37)), picture(2, (300, 211), "JPEG")]
    answer = served(run).post("/predict", files=files(*contents))
    assert answer.status_code == 200
    expected = mirada.load(run).rows(saved(tmp_path, *contents))
    for found, row in zip(answer.json()["answers"], expected, strict=True):
        assert found["predicted"] == row["predicted"]
        assert found["confidence"] == pytest.approx(row["confidence"], abs=2e-6)
        assert {f"p_{name}": p for name, p in found["probabilities"].items()} == pytest.approx(
            {key: row[key] for key in row if key.startswith("p_")}, abs=2e-6
        )
    assert [found["name"] for found in answer.json()["answers"]] == ["0.png", "1.png", "2.png"]


def test_values_and_several_labels_are_those_of_predict(served, tmp_path):
    (path,) = saved(tmp_path, picture())
    values = image_run(tmp_path / "values", "regression", ["height", "width"])
    expected = mirada.load(values).predict(path)[0]
    found = served(values).post("/predict", files=files(picture())).json()["answers"][0]
    assert {f"predicted_{name}": value for name, value in found["values"].items()} == pytest.approx(expected)
    labels = image_run(tmp_path / "labels", "multi-label", ["a", "b"])
    expected = mirada.load(labels).predict(path)[0]
    found = served(labels).post("/predict", files=files(picture())).json()["answers"][0]
    assert found["probabilities"]["b"] == pytest.approx(expected["p_b"]) and found["predicted"] == expected["predicted"]


def test_many_at_once_are_answered_as_alone(run, served):
    client = served(run)
    contents = [picture(seed) for seed in range(24)]
    alone = [client.post("/predict", files=files(content)).json()["answers"][0] for content in contents]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda content: client.post("/predict", files=files(content)).json(), contents))
    for one, found in zip(alone, together, strict=True):
        assert found["answers"][0]["probabilities"] == pytest.approx(one["probabilities"], abs=2e-6)


def test_explanations_are_those_of_explain(run, served, tmp_path):
    contents = [picture(3, (50, 40)), picture(4)]
    answer = served(run).post("/explain", files=files(*contents)).json()
    expected = mirada.explain(run, saved(tmp_path, *contents)).numbers()
    assert len(answer["explanations"]) == 2 and answer["notes"] == []
    for found, numbers in zip(answer["explanations"], expected, strict=True):
        assert found["target"] == numbers["target"] and found["answers"] == pytest.approx(numbers["answers"])
        assert list(found["maps"]) == list(numbers["maps"]) == ["chefer", "rollout", "attention"]
        for method, entry in found["maps"].items():
            assert np.allclose(entry["relevance"], numbers["maps"][method]["relevance"], atol=1e-6)
            assert entry["faithfulness"] == pytest.approx(numbers["maps"][method]["faithfulness"], abs=1e-5)


def test_methods_targets_and_pictures_can_be_chosen(run, served):
    client = served(run)
    chosen = {"method": ["legrad", "occlusion"], "target": SCRIPT, "faithfulness": False}
    found = client.post("/explain", params=chosen, files=files(picture())).json()["explanations"][0]
    assert found["target"] == SCRIPT and list(found["maps"]) == ["legrad", "occlusion"]
    assert found["maps"]["legrad"]["faithfulness"] is None
    drawn = client.post("/explain?format=png&method=rollout", files=files(picture()))
    assert drawn.headers["content-type"] == "image/png" and Image.open(io.BytesIO(drawn.content)).size[0] > 200
    assert client.post("/explain?format=png", files=files(picture(), picture())).status_code == 409
    assert client.post("/explain?method=magic", files=files(picture())).status_code == 422
    assert client.post("/explain?target=cat", files=files(picture())).status_code == 422


def test_masks_come_as_shares_or_as_a_picture(served, tmp_path):
    run = mask_run(tmp_path / "run")
    client, content = served(run), picture(5, (31, 45))
    (path,) = saved(tmp_path, content)
    found = client.post("/predict", files=files(content)).json()["answers"][0]
    expected = mirada.load(run).predict(path)[0]
    assert {f"share_{name}": share for name, share in found["shares"].items()} == pytest.approx(expected)
    drawn = Image.open(io.BytesIO(client.post("/predict?format=png", files=files(content)).content))
    assert drawn.mode == "P" and np.array_equal(np.asarray(drawn), mirada.load(run).segment(path))
    explained = client.post("/explain", files=files(content)).json()
    numbers = mirada.explain(run, path).numbers()[0]
    for method, entry in explained["explanations"][0]["maps"].items():
        assert np.allclose(entry["relevance"], numbers["maps"][method]["relevance"], atol=1e-6)


def test_a_model_of_tiles_explains_the_middle_of_an_image_as_large_as_it_is(served, tmp_path):
    run = mask_run(tmp_path / "run", fit="tile")
    large = Image.open(io.BytesIO(picture(5, (400, 500))))
    large.save(tmp_path / "large.jpg", quality=95)
    pixels = np.asarray(Image.open(tmp_path / "large.jpg"))
    middle = pixels[(400 - 24) // 2 :, (500 - 24) // 2 :][:24, :24]
    answer = served(run).post("/explain?method=occlusion", files=files((tmp_path / "large.jpg").read_bytes()))
    assert answer.status_code == 200, answer.text
    found = answer.json()["explanations"][0]["maps"]["occlusion"]["relevance"]
    for image in (middle, tmp_path / "large.jpg"):
        expected = mirada.explain(run, image, method="occlusion").numbers()[0]["maps"]["occlusion"]["relevance"]
        assert np.allclose(found, expected, atol=1e-6)


def test_the_card_tells_what_is_served(run, served):
    client = served(run, images=3)
    card = client.get("/card").json()
    assert card["run"] == "vit-photos" and card["task"] == "single-label" and card["image_size"] == [24, 24]
    assert card["classes"][2] == SCRIPT and card["limits"]["images"] == 3
    assert card["num_parameters"] == sum(weights.numel() for weights in mirada.load(run).model.parameters())
    assert client.get("/health").json()["status"] == "ready"
    assert client.get("/").json()["card"] == "/card"


def test_the_description_has_everything_and_no_page_from_elsewhere(run, served):
    client = served(run)
    assert client.get("/docs").status_code == 404 and client.get("/redoc").status_code == 404
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/", "/health", "/card", "/metrics", "/predict", "/explain"}
    refusals = {"400", "401", "404", "413", "415", "422", "429", "503"}
    assert refusals <= set(schema["paths"]["/predict"]["post"]["responses"])
    target = next(p for p in schema["paths"]["/explain"]["post"]["parameters"] if p["name"] == "target")
    assert SCRIPT in json.dumps(target)


def test_metrics_count_requests_and_batches(run, served):
    client = served(run)
    client.post("/predict", files=files(picture()))
    client.get("/nothing/here")
    text = client.get("/metrics").text
    assert 'mirada_requests_total{method="POST",path="/predict",status="200"} 1' in text
    assert 'mirada_requests_total{method="GET",path="other",status="404"} 1' in text
    assert 'mirada_batch_size_bucket{le="1"} 1' in text and "mirada_batch_size_count 1" in text
