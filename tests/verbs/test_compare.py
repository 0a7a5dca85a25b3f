"""A comparison of real trainings: same split, own folders, continued where it stopped."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mirada.errors import MiradaError
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.compare import compare
from mirada.verbs.train import Watcher

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


def test_every_training_is_a_run_with_the_same_split(finished: Path) -> None:
    runs = sorted(path.parent for path in finished.rglob("result.json"))
    assert [run.name for run in runs] == ["seed-0", "seed-1", "seed-0", "seed-1"]
    splits = {json.dumps(json.loads((run / "data.json").read_text())["split"]) for run in runs}
    assert len(splits) == 1


def test_table_and_figure(finished: Path) -> None:
    with open(finished / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["entrant"] for row in rows] == ENTRANTS
    results = [json.loads((finished / "cnn-nano" / f"seed-{seed}" / "result.json").read_text()) for seed in (0, 1)]
    assert float(rows[0]["value"]) == pytest.approx(sum(result["value"] for result in results) / 2)
    assert float(rows[1]["difference_low"]) <= float(rows[1]["difference"]) <= float(rows[1]["difference_high"])
    assert int(rows[1]["flops"]) > 0
    assert (finished / "table.md").read_text().count("\n") == 4
    assert (finished / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_finished_is_left_alone(finished: Path) -> None:
    watcher = Counting()
    found = compare(ENTRANTS, "digits", seeds=2, settings=SETTINGS, out=finished, watcher=watcher)
    assert watcher.started == 0
    assert "cnn:nano" in found.table


def test_another_comparison_needs_another_folder(finished: Path) -> None:
    with pytest.raises(MiradaError, match="holds another comparison"):
        compare(ENTRANTS, "digits", seeds=3, settings=SETTINGS, out=finished)


def test_minutes_become_steps_once(tmp_path: Path) -> None:
    compare(["cnn:nano", "cnn:micro"], "digits", seeds=1, minutes=0.002, out=tmp_path / "c")
    steps = json.loads((tmp_path / "c" / "steps.json").read_text())
    for label, slug in (("cnn:nano", "cnn-nano"), ("cnn:micro", "cnn-micro")):
        result = json.loads((tmp_path / "c" / slug / "seed-0" / "result.json").read_text())
        assert result["steps"] == steps[label]["steps"] == max(1, round(0.12 / steps[label]["seconds_per_step"]))


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
