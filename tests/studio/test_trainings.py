"""Trainings that the studio starts: refused before they start, stopped with everything saved, gone on with."""

import json
import subprocess
import sys
import time

import pytest
import yaml
from fastapi.testclient import TestClient

import mirada
from mirada.studio.app import create_app
from mirada.train.folder import RunFolder
from mirada.verbs.request import new_request, requested
from tests.verbs import trained_run

SETTINGS = {
    "system.arguments": {"dim": 8, "depth": 1, "num_heads": 2, "stem": "linear"},
    "train.batch_size": 16,
    "train.evaluations": 2,
    "baseline.name": "none",
    "train.device": "cpu",
}


def settled(studio, name, until, seconds=1200):
    """The run as soon as it is so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = studio.get(f"/api/runs/{name}").json()
        if until(found):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"source": "nowhere/"}, "there is no such folder or file"),
        ({"source": "--out=/tmp/x"}, "there is no such folder or file"),
        ({"source": "digits\0"}, "there is no such folder or file"),
        ({"source": "digits", "system": "vitt"}, "vitt"),
        ({"source": "digits", "system": "vit:huge"}, "has no size"),
        ({"source": "digits", "preset": "nope"}, "preset 'nope' does not exist"),
        ({"source": "digits", "settings": {"train.epoch": 3}}, "did you mean 'epochs'"),
        ({"source": "digits", "settings": {"train.steps": 0}}, "train.steps"),
        ({"source": "digits", "settings": {"train.steps": 1, "train.epochs": 1}}, "expected one of"),
        ({"source": "digits", "settings": {"runs": "/tmp"}}, "cannot be chosen from here"),
        ({"source": "digits", "settings": {"track": {"mlflow_uri": "sqlite:////tmp/x"}}}, "cannot be chosen from here"),
        ({"source": "digits", "settings": {"a b=c": 1}}, "does not exist"),
        ({"source": "digits", "settings": {"name": "x" * 40_000}}, "over"),
        ({"source": "digits", "settings": {"name": "\ud800"}}, "cannot be written down"),
        ({"source": "digits", "out": "/tmp/x"}, "body.out"),
        ({"source": ""}, "body.source"),
        ({}, "body.source"),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, what, said):
    studio = TestClient(create_app(tmp_path / "runs"), raise_server_exceptions=False)
    answer = studio.post("/api/trainings", content=json.dumps(what), headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422) and said in answer.json()["error"], answer.text
    assert not (tmp_path / "runs").exists()


def test_what_was_asked_for_is_what_the_command_line_takes(tmp_path):
    photos = trained_run.photos()
    given = requested(str(photos), "vit:nano", None, {**SETTINGS, "name": "../../<b>"})
    folder = new_request(tmp_path / "runs", given)
    assert folder.path.parent == tmp_path / "runs" and "/" not in folder.path.name
    settings = yaml.safe_load((folder.asked / "settings.yaml").read_text("utf-8"))
    assert settings["system"]["name"] == "vit" and settings["data"]["source"] == str(photos)
    mirada.train(config=folder.asked / "settings.yaml", settings=["train.steps=2"], out=folder.path)
    assert folder.is_finished and not folder.progress.exists()


def test_only_so_many_at_once_and_none_after_the_end(tmp_path):
    app = create_app(tmp_path / "runs")
    trainings = app.state.studio.trainings
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        trainings._running[tmp_path / "runs" / "other"] = sleeping
        answer = TestClient(app).post("/api/trainings", json={"source": "digits"})
        assert answer.status_code == 429 and "a training is running already" in answer.json()["error"]
        assert not (tmp_path / "runs").exists()
        trainings.close()
        assert sleeping.poll() is not None, "the end of the studio did not end its training"
    finally:
        sleeping.kill()
        sleeping.wait()
    assert TestClient(app).post("/api/trainings", json={"source": "digits"}).status_code == 503


def test_what_does_not_train_is_not_stopped_nor_resumed(studio):
    stopped = studio.post("/api/runs/photos/stop")
    assert stopped.status_code == 409 and "is not training" in stopped.json()["error"]
    resumed = studio.post("/api/runs/photos/resume")
    assert resumed.status_code == 409 and "is finished" in resumed.json()["error"]


@pytest.mark.long
def test_start_stop_and_resume(tmp_path):
    """To the bits of a run that was never stopped."""
    photos, steps = trained_run.photos(), 3000
    settings = {**SETTINGS, "train.steps": steps, "train.evaluations": 4}
    with TestClient(create_app(tmp_path / "runs")) as studio:
        started = studio.post(
            "/api/trainings", json={"source": str(photos), "system": "vit:nano", "settings": settings}
        )
        assert started.status_code == 201, started.text
        name = started.json()["name"]
        assert name == "vit-photos"
        first = studio.get(f"/api/runs/{name}").json()
        assert first["status"] == "training" and first["is_ours"] and first["source"] == str(photos)
        found = settled(studio, name, lambda run: run["progress"] is not None or run["status"] != "training")
        assert found["progress"]["steps"] == steps and 0 < found["progress"]["step"] < steps, found
        second = studio.post("/api/trainings", json={"source": "digits"})
        assert second.status_code == 429
        assert studio.post(f"/api/runs/{name}/stop").status_code == 200
        stopped = settled(studio, name, lambda run: run["status"] != "training")  # a busy machine takes its time
        assert stopped["status"] == "stopped" and stopped["failure"] is None, stopped
        assert not (tmp_path / "runs" / name / "progress.json").exists()
        assert studio.post(f"/api/runs/{name}/resume").json()["status"] == "training"
        done = settled(studio, name, lambda run: run["status"] != "training")
        assert done["status"] == "finished" and done["score"]["name"] == "accuracy", done
    words = [f"{key}={value}" for key, value in settings.items() if key != "system.arguments"]
    whole = mirada.train(photos, system="vit:nano", settings=[*trained_run.TINY, *words], out=tmp_path / "whole")
    own = RunFolder(tmp_path / "runs" / name)
    files = [folder.best / "model.safetensors" for folder in (whole, own)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.read_result()["best_step"] == own.read_result()["best_step"]


@pytest.mark.long
def test_a_failure_is_told_and_the_end_of_the_studio_stops_what_trains(tmp_path):
    (tmp_path / "empty").mkdir()
    with TestClient(create_app(tmp_path / "runs")) as studio:
        name = studio.post("/api/trainings", json={"source": str(tmp_path / "empty")}).json()["name"]
        failed = settled(studio, name, lambda run: run["status"] == "failed")
        assert str(tmp_path / "empty") in failed["failure"] and "Traceback" not in failed["failure"]
        settings = {**SETTINGS, "train.steps": 10**6}
        what = {"source": str(trained_run.photos()), "system": "vit:nano", "settings": settings}
        name = studio.post("/api/trainings", json=what).json()["name"]
        settled(studio, name, lambda run: run["progress"] is not None)
    folder = RunFolder(tmp_path / "runs" / name)
    assert folder.state.exists() and not folder.is_finished and not folder.progress.exists()
