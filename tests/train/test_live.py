"""progress.json: there while a run trains, gone when it ends or is stopped, and the reason where it fails."""

import json

import pytest

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.train.live import SECONDS_ALIVE, Live, read_heartbeat, told_live
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped

STEPS = [Progress(step, 5, 0, 16 * step, 0.1 * step, 1 / step, 1e-3, None, False) for step in (1, 2, 3, 4, 5)]


def test_it_is_written_once_a_second_and_at_the_end(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("mirada.train.live.time.monotonic", lambda: clock[0])
    folder, seen = RunFolder(tmp_path), []
    live = Live(folder)
    live.begins("model")
    for step, seconds in zip(STEPS, (0.2, 0.9, 0.2, 0.7, 0.1), strict=True):
        clock[0] += seconds
        live.advances(step)
        seen.append(json.loads(folder.progress.read_text("utf-8")).get("step"))
    assert seen == [None, 2, 2, 2, 5]
    assert read_heartbeat(folder).is_alive and [path.name for path in tmp_path.iterdir()] == ["progress.json"]


@pytest.mark.parametrize("error", [Stopped("Stopped.", 143), KeyboardInterrupt()])
def test_it_goes_when_a_run_is_stopped(tmp_path, error):
    with pytest.raises(type(error)), told_live(RunFolder(tmp_path)):
        raise error
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "said"),
    [(MiradaError("the loss became nan."), "the loss became nan."), (KeyError("x"), "unexpected KeyError ('x')")],
)
def test_it_says_why_a_run_failed(tmp_path, error, said):
    folder = RunFolder(tmp_path)
    with pytest.raises(type(error)), told_live(folder):
        raise error
    found = read_heartbeat(folder)
    assert found is not None and found.failure == said and not found.is_alive
    with told_live(folder):
        assert read_heartbeat(folder).failure is None, "what was resumed still counts as failed"
    assert read_heartbeat(folder) is None


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path):
    with told_live(RunFolder(tmp_path / "missing")) as live:
        live.advances(STEPS[-1])


def test_other_machines_are_believed_for_a_while(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    Live(folder).begins("model")
    content = json.loads(folder.progress.read_text("utf-8")) | {"host": "elsewhere"}
    for seconds, is_alive in ((SECONDS_ALIVE - 60, True), (SECONDS_ALIVE + 60, False)):
        folder.progress.write_text(json.dumps(content | {"time": content["time"] - seconds}), "utf-8")
        assert read_heartbeat(folder).is_alive is is_alive
    for broken in ("", "[]", "{}", '{"pid": "x", "host": 3, "time": "now"}'):
        folder.progress.write_text(broken, "utf-8")
        found = read_heartbeat(folder)
        assert found is None or not found.is_alive


def test_only_the_first_of_several_processes_tells(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with told_live(RunFolder(tmp_path)) as live:
        live.advances(STEPS[-1])
        assert not any(tmp_path.iterdir())
