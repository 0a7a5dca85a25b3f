"""Places and nodes over HTTP: the numbers of the verbs."""

import csv

import numpy as np
import pytest

import mirada
from mirada.verbs.maps.trained import TrainedPlots
from tests.graphs import make_graph
from tests.verbs.maps import plots_run


def table(path, points: list[dict]) -> str:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(points[0]))
        writer.writeheader()
        writer.writerows(points)
    return str(path)


def test_places(served, tmp_path):
    pytest.importorskip("rasterio")
    run = plots_run.run(plots_run.NO_VALIDATION)
    trained = mirada.load(run)
    assert isinstance(trained, TrainedPlots)
    plots = trained.points(plots_run.country() / "plots.csv").plots
    points = [
        {"longitude": float(lon), "latitude": float(lat), "soil": float(soil)}
        for (lon, lat), soil in zip(plots.lonlat_N2[:3], plots.covariates_ND[:3, 0], strict=True)
    ]
    client = served(run, explained=2)
    assert client.get("/card").json()["needs"] == ["rain", "heat", "soil"]
    found = client.post("/predict", json={"points": points}).json()["answers"]
    for answer, row in zip(found, trained.rows(table(tmp_path / "points.csv", points)), strict=True):
        assert answer["prediction"] == pytest.approx(row["predicted_richness"]) and answer["error"] is None
        assert all(row[name] == pytest.approx(value) for name, value in answer["numbers"].items())
    explained = client.post("/explain", json={"points": points[:2]}).json()["explanations"]
    assert np.shape(explained[0]["maps"]["integrated_gradients"]["relevance"]) == (3, 3)
    assert explained[0]["prediction"] == pytest.approx(found[0]["prediction"])

    far = {"longitude": -70.0, "latitude": -30.0, "soil": 1.0}
    mixed = client.post("/predict", json={"points": [points[0], far]}).json()["answers"]
    assert mixed[0]["error"] is None and "outside the rasters" in mixed[1]["error"] and mixed[1]["prediction"] is None
    for body in ({"points": [far]}, {"points": [points[0] | {"soil": None}]}):
        answer = client.post("/predict", json=body)
        assert answer.status_code in (200, 409) and "/tmp" not in answer.text and "Traceback" not in answer.text
    for wrong in (
        {"longitude": 181, "latitude": 0},
        {"longitude": 1},
        points[0] | {"=cmd": 1},
        points[0] | {"soil": "x"},
    ):
        assert client.post("/predict", json={"points": [wrong]}).status_code == 422


def test_nodes(served, tmp_path, monkeypatch):
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: path)
    source = make_graph(tmp_path / "friends")
    settings = ["train.epochs=2", "train.evaluations=1", "train.device=cpu", "baseline.name=none"]
    run = mirada.train(source, settings=settings, out=tmp_path / "run").path
    client = served(run)
    rows = {row["name"]: row for row in mirada.load(run).rows(str(source))}
    for answer in client.post("/predict", json={"nodes": ["n5", "n0"]}).json()["answers"]:
        row = rows[answer["node"]]
        assert answer["predicted"] == row["predicted"]
        assert answer["probabilities"]["blue"] == pytest.approx(row["p_blue"], abs=2e-6)
    explained = client.post("/explain", json={"nodes": ["n5"]}).json()["explanations"][0]
    assert explained["node"] == "n5" and explained["maps"]["gradient_attention"]
    assert client.post("/predict", json={"nodes": ["nobody"]}).status_code == 404
