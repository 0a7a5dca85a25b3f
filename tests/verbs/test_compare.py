"""A comparison of real trainings: same split, own folders, continued where it stopped."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from mirada.compare.contest import Contest
from mirada.errors import MiradaError
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs import contest_steps
from mirada.verbs.compare import compare
from mirada.verbs.contest_steps import plan_all
from mirada.verbs.train import Watcher

pytestmark = pytest.mark.xdist_group("compare")  # what its tests share is made once

SETTINGS = ["train.steps=2", "train.evaluations=1", "train.batch_size=16"]
ENTRANTS = ["cnn:nano", "vit:nano system.arguments.depth=1"]


class Counting(Watcher):
    """Says how many trainings were started, and stops after some."""

    def __init__(self, stop: StopRequest | None = None, after: int = 99) -> None:
        self.started, self.stop, self.after = 0, stop, after

    def starts(self, what: str, steps: int) -> None:
        self.started += 1
        if self.stop is not None and self.started > self.after:
            self.stop.request(15)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "c"
    stop = StopRequest()
    with pytest.raises(Stopped):
        compare(ENTRANTS, "digits", seeds=2, settings=SETTINGS, out=out, watcher=Counting(stop, 2), stop=stop)
    again = Counting()
    compare(out=out, watcher=again)
    assert again.started == 2  # the third goes on, the fourth is new
    return out


@pytest.mark.long
def test_every_training_is_a_run_with_the_same_split(finished: Path) -> None:
    runs = sorted(path.parent for path in finished.rglob("result.json"))
    assert [run.name for run in runs] == ["seed-0", "seed-1", "seed-0", "seed-1"]
    splits = {json.dumps(json.loads((run / "data.json").read_text())["split"]) for run in runs}
    assert len(splits) == 1


@pytest.mark.long
def test_table_and_figure(finished: Path) -> None:
    with open(finished / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["entrant"] for row in rows] == ENTRANTS
    results = [json.loads((finished / "cnn-nano" / f"seed-{seed}" / "result.json").read_text()) for seed in (0, 1)]
    assert float(rows[0]["value"]) == pytest.approx(sum(result["value"] for result in results) / 2)
    assert float(rows[1]["difference_low"]) <= float(rows[1]["difference"]) <= float(rows[1]["difference_high"])
    assert int(rows[1]["flops"]) == int(rows[1]["formula_flops"]) > 0
    assert (finished / "table.md").read_text().count("\n") == 4
    assert (finished / "comparison.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_what_is_finished_is_left_alone(finished: Path) -> None:
    watcher = Counting()
    found = compare(ENTRANTS, "digits", seeds=2, settings=SETTINGS, out=finished, watcher=watcher)
    assert watcher.started == 0
    assert "cnn:nano" in found.table


@pytest.mark.long
def test_another_comparison_needs_another_folder(finished: Path) -> None:
    with pytest.raises(MiradaError, match="holds another comparison"):
        compare(ENTRANTS, "digits", seeds=3, settings=SETTINGS, out=finished)


@pytest.mark.long
def test_minutes_become_steps_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest_steps, "ROUNDS", 1)
    compare(["cnn:nano", "cnn:micro"], "digits", seeds=1, minutes=0.002, out=tmp_path / "c")
    steps = json.loads((tmp_path / "c" / "steps.json").read_text())
    for label, slug in (("cnn:nano", "cnn-nano"), ("cnn:micro", "cnn-micro")):
        result = json.loads((tmp_path / "c" / slug / "seed-0" / "result.json").read_text())
        assert result["steps"] == steps[label]["steps"] == max(1, round(0.12 / steps[label]["seconds_per_step"]))
    with open(tmp_path / "c" / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:  # the speed is that of the timing, which the trainings of a busy machine cannot change
        entry = steps[row["entrant"]]
        assert float(row["images_per_second"]) == pytest.approx(64 / entry["seconds_per_step"])


def test_entrants_share_the_data_that_they_read() -> None:
    entrants = ("cnn:nano", "vit:nano", "vit:nano data.image_size=[7,7]")
    planned = plan_all(Contest("digits", entrants, 1, tuple(SETTINGS)))
    cnn, vit, smaller = (prepared for _, prepared in planned.values())
    assert cnn is vit
    assert smaller is not vit


def test_tasks_that_differ_are_refused() -> None:
    with pytest.raises(MiradaError, match=r"'image_gpt:nano' learns another task than 'cnn:nano' \(pixels, not single"):
        plan_all(Contest("digits", ("cnn:nano", "image_gpt:nano"), 1, tuple(SETTINGS)))


class Saying(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []

    def says(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.mark.long
def test_several_at_once_end_where_one_after_the_other_would(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "c"
    shutil.copytree(finished, out)
    for seed in (0, 1):
        shutil.rmtree(out / "cnn-nano" / f"seed-{seed}")
    watcher = Saying()
    compare(out=out, at_once=2, watcher=watcher)
    assert watcher.said[:2] == ["cnn:nano, seed 0", "cnn:nano, seed 1"]
    for seed in (0, 1):
        one, other = (
            json.loads((c / "cnn-nano" / f"seed-{seed}" / "result.json").read_text()) for c in (out, finished)
        )
        assert one["value"] == other["value"]
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


@pytest.mark.long
def test_a_training_that_fails_beside_is_named(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "c"
    shutil.copytree(finished, out)
    (out / "cnn-nano" / "seed-0" / "result.json").unlink()
    (out / "cnn-nano" / "seed-0" / "config.yaml").write_text("train: {steps: none}")
    with pytest.raises(MiradaError, match="cnn:nano, seed 0: its training ended with code 1"):
        compare(out=out, at_once=2)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(MiradaError, match="nothing to compare"):
        compare(out=tmp_path)
    with pytest.raises(MiradaError, match="no data is named"):
        compare(["vit", "cnn"])
    with pytest.raises(MiradaError, match=r"train\.steps: the budget of all"):
        compare(["vit", "cnn"], "digits", minutes=1, settings=["train.steps=2"])
    with pytest.raises(MiradaError, match="'vitt'"):
        compare(["vitt", "cnn"], "digits", settings=SETTINGS, out=tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(MiradaError, match="--at-once 0"):
        compare(["vit", "cnn"], "digits", at_once=0)
