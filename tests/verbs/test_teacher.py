"""A run as the teacher of another: written down, resumed to the bit, refused where it must be; the command line."""

import hashlib
import json
import shutil
import signal

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

import mirada
from mirada.cli.app import app
from mirada.config.load import load_config, merge
from mirada.errors import MiradaError
from mirada.report.contents import read_contents
from mirada.report.facts import repeat_facts, training_facts
from mirada.tasks.distillation import Teacher
from mirada.train.checkpoint import load_model, load_tensors, save_tensors
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.train import Watcher, resume
from tests.train.test_resume import StopAt, outcome
from tests.verbs.trained_run import TINY, make_photos

STUDENT = (*TINY, "train.steps=6", "train.checkpoint_seconds=1e-6", "baseline.name=none", "augment.strength=medium")


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: path)


class Heard(Watcher):
    def __init__(self):
        self.sentences = []

    def says(self, sentence):
        self.sentences.append(sentence)


def student(photos, out, *settings, system="deit", **others):
    return mirada.train(photos, system=system, settings=[*STUDENT, *settings], out=out, **others)


def weights_of(folder):
    return (folder.best / "model.safetensors").read_bytes()


def change_weights(run):
    path = run / "best" / "model.safetensors"
    save_tensors(path, {name: tensor + 1 for name, tensor in load_tensors(path).items()})


def test_teacher_and_its_checksum_are_written_down(photos, run, tmp_path):
    folder = student(photos, tmp_path / "student", f"distil.teacher={run}", "distil.kind=soft", "distil.weight=0.3")
    distil = yaml.safe_load(folder.config.read_text())["distil"]
    expected = hashlib.sha256((run / "best" / "model.safetensors").read_bytes()).hexdigest()
    assert distil == {"teacher": str(run), "kind": "soft", "weight": 0.3, "temperature": 3.0, "checksum": expected}
    assert folder.read_result()["teacher"] == str(run)
    contents = read_contents(folder.path)
    assert ("Teacher", str(run)) in training_facts(contents)["rows"]
    assert f"--teacher {run} distil.kind=soft distil.weight=0.3" in repeat_facts(contents)["short"]
    model = load_model(folder.best)
    assert model(torch.zeros(1, 3, 8, 8)).shape == (1, 3)


def test_the_teacher_matters_and_its_kind_too(photos, run, tmp_path):
    given = {
        "none": (),
        "hard": (f"distil.teacher={run}",),
        "soft": (f"distil.teacher={run}", "distil.kind=soft"),
        "nothing": (f"distil.teacher={run}", "distil.weight=0"),
    }
    for system in ("deit", "cnn"):
        size = ("system.size=nano", "system.arguments={dim: 8}") if system == "cnn" else ()
        settings = [word for word in STUDENT if system == "deit" or "arguments" not in word]
        found = {
            name: weights_of(
                mirada.train(photos, system=system, settings=[*settings, *size, *words], out=tmp_path / system / name)
            )
            for name, words in given.items()
        }
        assert len({found["none"], found["hard"], found["soft"]}) == 3
        # One output that follows the labels only is as if nobody taught; with two, the mean learned them otherwise.
        assert (found["nothing"] == found["none"]) == (system == "cnn")


@pytest.mark.parametrize("step", [1, 4])
def test_stopped_and_resumed_equals_never_having_stopped(photos, run, tmp_path, step):
    words = (f"distil.teacher={run}", "distil.kind=soft")
    whole = student(photos, tmp_path / "whole", *words)
    stop = StopRequest()
    with pytest.raises(Stopped):
        student(photos, tmp_path / "part", *words, watcher=StopAt(step, stop), stop=stop)
    assert outcome(resume(tmp_path / "part")) == outcome(whole)


def test_resuming_needs_the_teacher_as_it_was(photos, own_run, tmp_path):
    stop = StopRequest()
    stop.request(signal.SIGTERM)
    with pytest.raises(Stopped):
        student(photos, tmp_path / "student", f"distil.teacher={own_run}", stop=stop)
    change_weights(own_run)
    with pytest.raises(MiradaError, match="weights changed since this run started"):
        resume(tmp_path / "student")
    shutil.rmtree(own_run)
    with pytest.raises(MiradaError, match="is not the folder of a run"):
        resume(tmp_path / "student")


def test_repeating_from_the_saved_configuration_wants_the_same_teacher(photos, own_run, tmp_path):
    folder = student(photos, tmp_path / "student", f"distil.teacher={own_run}")
    again = mirada.train(config=folder.config, out=tmp_path / "again")
    assert weights_of(again) == weights_of(folder)
    other = mirada.train(config=folder.config, settings=[f"distil.teacher={own_run}/baseline"], out=tmp_path / "other")
    assert load_config(other.config).distil.checksum != load_config(folder.config).distil.checksum
    change_weights(own_run)
    with pytest.raises(MiradaError, match=r"not those of distil.checksum.*distil.checksum=null"):
        mirada.train(config=folder.config, out=tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_another_teacher_drops_the_checksum_of_the_earlier_one():
    earlier = {"distil": {"teacher": "a", "checksum": "1"}}
    assert merge(earlier, {"distil": {"teacher": "b"}}) == {"distil": {"teacher": "b"}}
    assert merge(earlier, {"distil": {"teacher": "a"}}) == earlier


@pytest.mark.long
def test_baseline_has_no_teacher(photos, run, tmp_path):
    words = ("baseline.name=cnn", "baseline.size=nano", f"distil.teacher={run}")
    folder = student(photos, tmp_path / "student", *words)
    assert load_config(folder.baseline.config).distil.teacher is None
    assert folder.baseline.read_result()["teacher"] is None


def test_teacher_sees_every_augmented_batch_once_without_gradient(photos, run, tmp_path, monkeypatch):
    seen = []
    original = Teacher.__call__

    def listen(self, images):
        answer = original(self, images)
        seen.append((images.clone(), answer.requires_grad, self.model.training))
        return answer

    monkeypatch.setattr(Teacher, "__call__", listen)
    student(photos, tmp_path / "student", f"distil.teacher={run}")
    assert len(seen) == 6
    assert not any(needs_gradient or is_training for _, needs_gradient, is_training in seen)
    assert len({images.sum().item() for images, *_ in seen}) == 6


def test_other_classes_are_refused(run, tmp_path):
    others = make_photos(tmp_path / "photos", classes=("bright", "dark"), per_class=12)
    with pytest.raises(MiradaError, match=r"knows 3 classes \(bright, dark, grey\), but .* 2 classes"):
        student(others, tmp_path / "student", f"distil.teacher={run}")
    assert not (tmp_path / "student").exists()


def test_other_channels_are_refused(photos, run, own_run, tmp_path):
    data = json.loads((own_run / "data.json").read_text())
    (own_run / "data.json").write_text(json.dumps(data | {"in_channels": 1}))
    with pytest.raises(MiradaError, match="takes images of 1 channels, but those here have 3"):
        student(photos, tmp_path / "student", f"distil.teacher={own_run}")


def test_no_teacher_there_is_refused(photos, tmp_path):
    with pytest.raises(MiradaError, match="there is no such folder"):
        student(photos, tmp_path / "student", "distil.teacher=nobody")


def test_numbers_cannot_be_taught(run, tmp_path):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 255, (30, 8, 8, 3), generator=generator, dtype=torch.uint8).numpy()
    np.savez(tmp_path / "numbers.npz", images=pixels, labels=np.linspace(0, 1, 30))
    with pytest.raises(MiradaError, match=r"images with one class each, but .* is regression"):
        student(tmp_path / "numbers.npz", tmp_path / "student", f"distil.teacher={run}")


def test_a_teacher_that_saw_the_held_out_images_is_told(photos, run, tmp_path):
    heard = Heard()
    student(photos, tmp_path / "same", f"distil.teacher={run}", watcher=heard)
    assert not any("held out" in sentence for sentence in heard.sentences)
    student(photos, tmp_path / "other", f"distil.teacher={run}", "data.split_seed=1", watcher=heard)
    assert any("images held out here" in sentence for sentence in heard.sentences)


def test_command_line(photos, run, tmp_path):
    words = ["train", str(photos), "--system", "deit", "--teacher", str(run), "--out", str(tmp_path / "student"), "-q"]
    result = CliRunner().invoke(app, [*words, *STUDENT])
    assert result.exit_code == 0, result.output
    assert load_config(tmp_path / "student" / "config.yaml").distil.teacher == str(run)
