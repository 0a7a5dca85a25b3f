"""A server by ONNX Runtime: the answers of torch, and one sentence where it cannot explain."""

import pytest
from fastapi.testclient import TestClient

from mirada.serve.app import create_app
from tests.verbs.engines import exported_run

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.xdist_group("engines")


def test_answers_are_those_of_torch_and_the_card_says_the_engine(photos):
    run = exported_run.run()
    files = [("image", (path.name, path.read_bytes())) for path in sorted((photos / "grey").iterdir())[:3]]
    found = []
    for folder, engine in ((run, None), (run, "onnx"), (exported_run.folder(), None)):
        app = create_app(folder, device="cpu", engine=engine)
        with TestClient(app, base_url="http://localhost:8000") as client:
            card = client.get("/card").json()
            found.append((card["engine"], client.post("/predict", files=files).json()["answers"]))
            assert card["num_parameters"] > 100 and card["system"] == "cnn" and card["precision"] == "float32"
            explained = client.post("/explain", files=files[:1])
            if card["engine"] == "onnx":
                assert explained.status_code == 409
                assert explained.json() == {"error": "explanations need torch, and this server computes by onnx."}
    assert [engine for engine, _ in found] == ["torch", "onnx", "onnx"]
    for _, answers in found[1:]:
        for one, other in zip(answers, found[0][1], strict=True):
            assert (one["name"], one["predicted"]) == (other["name"], other["predicted"])
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


@pytest.fixture
def photos():
    from tests.verbs.trained_run import photos

    return photos()
