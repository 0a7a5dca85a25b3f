"""A run that was stopped anywhere and resumed ends in the same bits as one that was not."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.train import Watcher, resume, train

SETTINGS = (
    *("train.steps=24", "train.evaluations=4", "train.batch_size=16", "train.checkpoint_seconds=1e-6"),
    *("train.device=cpu", "baseline.name=none", "augment.strength=medium"),
    *("system.name=vit", "system.size=nano", "system.arguments.dim=16", "system.arguments.depth=1"),
    *("system.arguments.num_heads=2", "system.arguments.dropout=0.1"),
)


@pytest.fixture(scope="module", autouse=True)
def no_report():
    """Reports have their own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirada.verbs.stages.build_report", lambda path: path)
        yield


class StopAt(Watcher):
    """Asks for a stop, or breaks, at some step."""

    def __init__(self, step: int, stop: StopRequest | None = None) -> None:
        self.step, self.stop = step, stop

    def advances(self, progress: Progress) -> None:
        if progress.step == self.step and self.stop is not None:
            self.stop.request(signal.SIGTERM)
        elif progress.step == self.step:
            raise RuntimeError("power cut")


def outcome(folder: RunFolder) -> tuple:
    """Everything a run leaves behind, except how long it took."""
    with open(folder.metrics, newline="") as file:
        rows = [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)]
    weights = (folder.best / "model.safetensors").read_bytes()
    return weights, rows, folder.predictions.read_bytes()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> RunFolder:
    return train("digits", settings=SETTINGS, out=tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize("step", [1, 5, 6, 17, 23])
def test_sigterm_then_resume_equals_never_having_stopped(untouched, tmp_path, step):
    stop = StopRequest()
    with pytest.raises(Stopped, match="mirada resume") as stopped:
        train("digits", settings=SETTINGS, out=tmp_path / "run", watcher=StopAt(step, stop), stop=stop)
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    assert outcome(resume(tmp_path / "run")) == outcome(untouched)


@pytest.mark.parametrize("step", [1, 6, 11])
def test_a_crash_then_resume_equals_never_having_stopped(untouched, tmp_path, step):
    with pytest.raises(RuntimeError, match="power cut"):
        train("digits", settings=SETTINGS, out=tmp_path / "run", watcher=StopAt(step))
    assert outcome(resume(tmp_path / "run")) == outcome(untouched)


def test_matrices_moved_by_muon_resume_as_exactly(tmp_path):
    settings, stop = (*SETTINGS, "train.optimiser=muon"), StopRequest()
    with pytest.raises(Stopped):
        train("digits", settings=settings, out=tmp_path / "run", watcher=StopAt(7, stop), stop=stop)
    whole = train("digits", settings=settings, out=tmp_path / "whole")
    assert outcome(resume(tmp_path / "run")) == outcome(whole)


def test_the_state_of_another_optimiser_is_refused(tmp_path):
    stop = StopRequest()
    with pytest.raises(Stopped):
        train("digits", settings=SETTINGS, out=tmp_path / "run", watcher=StopAt(2, stop), stop=stop)
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("optimiser: adamw", "optimiser: muon"))
    with pytest.raises(MiradaError, match=r"was saved by train\.optimiser=adamw, and config\.yaml says muon"):
        resume(tmp_path / "run")


def test_resuming_a_finished_run_changes_nothing(untouched):
    before = outcome(untouched)
    assert outcome(resume(untouched.path)) == before


def test_resume_refuses_changed_data_and_folders_that_are_no_runs(tmp_path):
    with pytest.raises(MiradaError, match="not the folder of a run"):
        resume(tmp_path)


def test_patience_survives_a_stop(tmp_path):
    patient = (*SETTINGS, "train.patience=1", "train.learning_rate=1e-9", "train.average=0", "train.steps=60")
    patient = (*patient, "train.evaluations=20")
    whole = train("digits", settings=patient, out=tmp_path / "whole")
    assert whole.read_result()["steps"] < 60
    stop = StopRequest()
    with pytest.raises(Stopped):
        train("digits", settings=patient, out=tmp_path / "run", watcher=StopAt(4, stop), stop=stop)
    assert outcome(resume(tmp_path / "run")) == outcome(whole)


@pytest.mark.long
def test_kill_9_at_ten_random_moments_then_resume_equals_never_having_stopped(untouched, tmp_path):
    """Each process is killed at a random moment of its life, start-up and writing included."""
    clock = random.Random(7)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = tmp_path / "run"
    script = Path(__file__).with_name("one_run.py")
    kills = 0
    while not RunFolder(run).is_finished:
        process = subprocess.Popen([sys.executable, script, run, *SETTINGS], env=environment)
        if kills < 10:
            time.sleep(clock.uniform(0.5, 14.0))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        else:
            assert process.wait() == 0
    assert outcome(RunFolder(run)) == outcome(untouched)
