"""What the studio tells of runs, in whatever state they are, and what it does not tell."""

import csv
import io
import json
import os
import shutil
import socket
import time

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from mirada.config.schema import Config
from mirada.studio.app import create_app
from mirada.train.folder import RunFolder
from mirada.train.live import Live, write_failure
from mirada.train.loop import Progress

STEP = Progress(7, 20, 1, 112, 3.5, 0.25, 1e-3, None, False)


def one(studio, name="photos"):
    answer = studio.get(f"/api/runs/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_list_has_the_headline_of_every_run(shared, shared_runs):
    found = {run["name"]: run for run in shared.get("/api/runs").json()["runs"]}
    assert set(found) == {"photos", "shapes", "pairs", "book", "lines", "labels"}
    for name, run in found.items():
        result = RunFolder(shared_runs / name).read_result()
        assert run["status"] == "finished" and run["has_report"] and not run["is_ours"]
        assert run["score"]["value"] == result["value"] and run["num_parameters"] == result["num_parameters"]
    baseline = RunFolder(shared_runs / "photos").baseline.read_result()
    assert found["photos"]["baseline"] == {
        "name": "accuracy",
        "system": "cnn",
        **{key: baseline[key] for key in ("value", "low", "high")},
    }
    assert {name: run["pages"] for name, run in found.items() if name != "labels"} == {
        "photos": ["look"],
        "shapes": ["look"],
        "pairs": ["read"],
        "book": ["read"],
        "lines": ["read"],
    }
    assert found["pairs"]["score"]["name"] == "BLEU" and found["shapes"]["kind"] == "masks"


def test_a_run_has_its_curves_and_its_settings(shared, shared_runs):
    found = one(shared)
    folder = RunFolder(shared_runs / "photos")
    assert found["config_yaml"] == folder.config.read_text("utf-8")
    assert found["metrics"]["val_accuracy"] == [float(row["val_accuracy"]) for row in folder.read_metrics()]
    assert found["baseline_metrics"]["step"][-1] == float(folder.baseline.read_metrics()[-1]["step"])
    assert found["classes"] == ["bright", "dark", "grey"] and found["image_size"] == [8, 8]
    assert found["log"] and found["progress"] is None and found["failure"] is None


def test_progress_of_any_process_is_told_while_it_lives(studio, own_runs):
    folder = RunFolder(own_runs / "photos")
    folder.result.unlink()
    assert one(studio)["status"] == "stopped"
    live = Live(folder)
    live.begins("model")
    assert one(studio)["status"] == "training" and one(studio)["progress"] is None
    live.begins("baseline")
    live._written = 0.0
    live.advances(STEP)
    found = one(studio)
    assert found["status"] == "training" and found["is_ours"] is False
    assert found["progress"] == {
        "what": "baseline",
        "step": 7,
        "steps": 20,
        "epoch": 1,
        "samples": 112,
        "seconds": 3.5,
        "seconds_left": 6.5,
        "samples_per_second": 32.0,
        "train_loss": 0.25,
        "learning_rate": 1e-3,
    }
    content = json.loads(folder.progress.read_text("utf-8"))
    for dead in ({"pid": 2**22 + 1}, {"began": "1"}, {"host": "elsewhere", "time": time.time() - 3600}):
        folder.progress.write_text(json.dumps(content | dead), "utf-8")
        assert one(studio)["status"] == "stopped", dead
    folder.progress.write_text(json.dumps(content | {"host": "elsewhere", "time": time.time(), "pid": 1}), "utf-8")
    assert one(studio)["status"] == "training"
    answer = studio.post("/api/runs/photos/stop")
    assert answer.status_code == 409 and "was not started by this studio" in answer.json()["error"]
    assert content["host"] == socket.gethostname() and content["pid"] == os.getpid()


def test_a_failure_is_told_in_its_sentence(studio, own_runs):
    write_failure(RunFolder(own_runs / "photos"), "the loss became nan at step 3.")
    found = one(studio)
    assert found["status"] == "failed" and found["failure"] == "the loss became nan at step 3."


def test_a_run_that_was_stopped_before_its_baseline_was_done_is_stopped(studio, own_runs):
    (own_runs / "photos" / "baseline" / "result.json").unlink()
    assert one(studio)["status"] == "stopped"


@pytest.mark.parametrize("name", ["config.yaml", "data.json", "result.json", "metrics.csv", "progress.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[1, 2", b'{"value": "x", "image_size": 3}', b"null\n"])
def test_broken_runs_do_not_break_the_list(studio, own_runs, name, content):
    shutil.copytree(own_runs / "photos", own_runs / "whole")
    (own_runs / "photos" / name).write_bytes(content)
    assert {run["name"] for run in studio.get("/api/runs").json()["runs"]} == {"photos", "whole"}
    one(studio)


def test_numbers_that_are_none_are_null(studio, own_runs):
    folder = RunFolder(own_runs / "photos")
    folder.write_result(folder.read_result() | {"low": float("nan"), "high": float("inf")})
    folder.metrics.write_text("step,val_loss\n1,nan\n2,\n3,0.5,7\n", "utf-8")
    found = one(studio)
    assert found["score"]["low"] is None and found["score"]["high"] is None
    assert found["metrics"] == {"step": [1, 2, 3], "val_loss": [None, None, 0.5]}


def test_names_lead_nowhere_else(studio, own_runs, tmp_path):
    outside = shutil.copytree(own_runs / "photos", tmp_path / "outside")
    (own_runs / "link").symlink_to(outside)
    (own_runs / "loop").symlink_to(own_runs / "loop")
    (own_runs / "nothing").mkdir()
    (own_runs / "file").write_text("x", "utf-8")
    names = ["%2e%2e", "%2e", "..%2f..%2fetc", "..%5c..", "photos%2fbaseline", "photos%00", "%20", "a" * 300, "link"]
    names += ["loop", "nothing", "file", "%ed%a0%80", "photos%0a", "%2fetc%2fpasswd", "%2e%2e%2foutside"]
    for name in names:
        for rest in ("", "/report", "/held-out", "/held-out/0/picture"):
            answer = studio.get(f"/api/runs/{name}{rest}")
            assert answer.status_code == 404 and list(answer.json()) == ["error"], (name, rest, answer.text)
        for rest in ("stop", "resume", "looks", "readings", "next"):
            answer = studio.post(f"/api/runs/{name}/{rest}", json={"text": "one"})
            assert answer.status_code in (404, 405), (name, rest, answer.text)
    assert [run["name"] for run in studio.get("/api/runs").json()["runs"]] == ["photos"]


def test_script_in_names_stays_text(studio, own_runs):
    name = "<script>alert(1)<"
    shutil.copytree(own_runs / "photos", own_runs / name)
    answer = studio.get("/api/runs")
    assert name in {run["name"] for run in answer.json()["runs"]}
    assert (
        answer.headers["content-type"] == "application/json" and answer.headers["x-content-type-options"] == "nosniff"
    )
    assert one(studio, "%3Cscript%3Ealert(1)%3C")["name"] == name
    missing = studio.get("/api/runs/%3Cimg%20onerror%3Dx%3E")
    assert missing.status_code == 404 and missing.headers["content-type"] == "application/json"


def test_a_report_can_do_nothing_but_show_itself(studio, own_runs):
    answer = studio.get("/api/runs/photos/report")
    assert answer.text == (own_runs / "photos" / "report.html").read_text("utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;") and "allow-same-origin" not in policy
    assert "default-src 'none'" in policy and "connect-src" not in policy
    (own_runs / "photos" / "report.html").unlink()
    (own_runs / "photos" / "report.html").symlink_to("/etc/hostname")
    assert studio.get("/api/runs/photos/report").status_code == 404


def test_held_out_images_are_those_of_the_run(shared, shared_runs):
    with open(shared_runs / "photos" / "predictions.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = shared.get("/api/runs/photos/held-out?start=2&count=3").json()
    assert found["total"] == len(rows) == one(shared)["num_held_out"]
    assert found["items"] == [
        {
            "index": number,
            "name": rows[number]["name"],
            "truth": rows[number]["target"],
            "answer": rows[number]["predicted"],
            "is_right": rows[number]["target"] == rows[number]["predicted"],
        }
        for number in (2, 3, 4)
    ]
    picture = Image.open(io.BytesIO(shared.get("/api/runs/photos/held-out/2/picture").content))
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(Image.open(rows[2]["name"])))
    for index in (-1, len(rows), 10**30):
        assert shared.get(f"/api/runs/photos/held-out/{index}/picture").status_code == 404
    assert shared.get("/api/runs/photos/held-out?start=1000").json()["items"] == []
    assert "was not trained on images" in shared.get("/api/runs/book/held-out").json()["error"]


def test_held_out_images_with_masks(shared):
    found = shared.get("/api/runs/shapes/held-out").json()
    assert found["total"] == 4 and found["items"][0]["answer"].startswith("Dice ")
    picture = shared.get("/api/runs/shapes/held-out/0/picture")
    assert picture.headers["content-type"] == "image/png"


def test_choices_are_those_of_the_command_line(shared):
    found = shared.get("/api/choices").json()
    assert found["schema"] == Config.model_json_schema()
    vit = next(card for card in found["systems"] if card["name"] == "vit")
    assert "nano" in vit["sizes"] and vit["kinds"] == ["image"]
    assert found["samples"] == ["digits", "photos"] and all(preset["summary"] for preset in found["presets"])


def test_a_folder_that_does_not_exist_yet_is_empty(tmp_path):
    studio = TestClient(create_app(tmp_path / "runs"))
    assert studio.get("/api/runs").json()["runs"] == [] and not (tmp_path / "runs").exists()


@pytest.fixture
def built(tmp_path):
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>the page", "utf-8")
    (static / "assets" / "main-1234.js").write_text("1", "utf-8")
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    return static


def test_pages_come_with_the_right_patience(tmp_path, built):
    studio = TestClient(create_app(tmp_path, static=built))
    assert studio.get("/").text.endswith("the page") and studio.get("/").headers["cache-control"] == "no-cache"
    script = studio.get("/assets/main-1234.js")
    assert "immutable" in script.headers["cache-control"] and "javascript" in script.headers["content-type"]
    assert "default-src 'self'" in studio.get("/").headers["content-security-policy"]
    for path in ("/..%2fsecret.txt", "/%2e%2e/secret.txt", "/assets/../../secret.txt", "/x%00", "/assets", "/nothing"):
        assert studio.get(path).status_code == 404, path


def test_without_built_pages_the_rest_works(tmp_path):
    studio = TestClient(create_app(tmp_path, static=tmp_path / "missing"))
    assert "make studio" in studio.get("/").text and studio.get("/api/runs").status_code == 200


def test_under_a_prefix(tmp_path, built):
    studio = TestClient(create_app(tmp_path, static=built, root_path="/lab/mirada", token="secret"))
    for prefix in ("", "/lab/mirada"):  # whether the proxy strips it or not
        assert studio.get(f"{prefix}/").text.endswith("the page")
        assert studio.get(f"{prefix}/api/runs").status_code == 401
        assert studio.get(f"{prefix}/api/runs", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_with_a_token_pages_are_open_and_runs_are_not(tmp_path, built):
    studio = TestClient(create_app(tmp_path, static=built, token="secret"))
    assert studio.get("/").status_code == studio.get("/assets/main-1234.js").status_code == 200
    assert studio.get("/api/runs").status_code == studio.get("/openapi.json").status_code == 401
    assert studio.get("/api/runs?token=secret").status_code == 200
    assert studio.post("/api/trainings?token=secret", json={"source": "digits"}).status_code == 401
    assert studio.get("/api/runs", headers={"Authorization": "Bearer wrong"}).status_code == 401
    for path in ("//api/runs", "/API/runs", "/x/../api/runs"):
        assert "runs" not in studio.get(path).text
