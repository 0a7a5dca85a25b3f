"""Processes that train together give what one gives, stop together, and notice when one of them is gone."""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from mirada.config.load import resolve
from mirada.errors import MiradaError
from mirada.machine.processes import Processes, require_one
from mirada.train.folder import RunFolder
from mirada.verbs.possible import require_shareable
from mirada.verbs.prepare import prepare_data
from mirada.verbs.train import train

SCRIPT = Path(__file__).with_name("one_of_several.py")
TINY = (
    *("train.steps=6", "train.evaluations=2", "train.device=cpu", "baseline.name=none"),
    *("system.name=vit", "system.size=nano", "system.arguments.dim=16", "system.arguments.depth=2"),
    *(
        "system.arguments.num_heads=2",
        "system.arguments.dropout=0.0",
        "system.arguments.drop_path=0.0",
        "augment.strength=strong",
    ),
)
SHARED = (*TINY, "train.batch_size=16")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SCRIPT.parents[2])}
STOPPED = 128 + signal.SIGTERM


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Reports have their own tests."""
    monkeypatch.setattr("mirada.verbs.stages.build_report", lambda path: path)


def several(run: Path, source: str | Path, *settings: str, count: int = 2, code: int = 0) -> list[str]:
    """What they say. Without torchrun, which takes its time: the variables that it sets are all that is needed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = ENVIRONMENT | {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, str(SCRIPT), str(run), str(source), *settings]
    processes = [
        subprocess.Popen(
            command, env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE, text=True
        )
        for rank in range(count)
    ]
    try:
        said = [process.communicate(timeout=600)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [code] * count, said
    return [line for each in said for line in each.splitlines() if line.startswith("mirada: ")]


def numbers(folder: RunFolder) -> list[dict[str, float]]:
    with open(folder.metrics, newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: float(value) for name, value in row.items() if name != "seconds"} for row in rows]


def assert_same(these: RunFolder, those: RunFolder) -> None:
    for mine, other in zip(numbers(these), numbers(those), strict=True):
        assert mine == pytest.approx(other, rel=1e-5)
    # The gradient of a bias of all keys is nothing but rounding, which Adam takes for a direction.
    weights = [load_file(folder.best / "model.safetensors") for folder in (these, those)]
    kept = [{name: tensor for name, tensor in each.items() if not name.endswith("to_k.bias")} for each in weights]
    assert_close(*kept, rtol=1e-3, atol=1e-4)
    results = [folder.read_result() for folder in (these, those)]
    assert results[0]["loss"] == pytest.approx(results[1]["loss"], rel=1e-5)
    assert results[0]["samples_seen"] == results[1]["samples_seen"]


@pytest.mark.long
def test_two_processes_give_the_losses_of_one(tmp_path):
    """A batch of 15 is shared out as 7 and 8, and weighed by the classes in each."""
    settings = (*TINY, "train.batch_size=15", "train.class_weights=true", "augment.mixup=0", "augment.cutmix=0")
    several(tmp_path / "two", "digits", *settings)
    assert_same(RunFolder(tmp_path / "two"), train("digits", settings=settings, out=tmp_path / "one"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("sharding", "optimiser"), [("none", "adamw"), ("none", "muon"), ("full", "adamw"), ("full", "muon")]
)
def test_mixing_accumulation_and_means_of_weights_stay_what_they_are(tmp_path, sharding, optimiser):
    settings = (*SHARED, "train.accumulate=2", "train.average_last=2", f"train.optimiser={optimiser}")
    several(tmp_path / "two", "digits", *settings, f"train.sharding={sharding}")
    assert_same(RunFolder(tmp_path / "two"), train("digits", settings=settings, out=tmp_path / "one"))


@pytest.mark.long
@pytest.mark.parametrize(("first", "second", "sharding"), [(2, 1, "full"), (1, 2, "full"), (2, 3, "none")])
def test_a_stopped_run_goes_on_with_another_number_of_processes(tmp_path, first, second, sharding):
    run, settings = tmp_path / "run", (*SHARED, f"train.sharding={sharding}")
    Path(f"{run}.stop").write_text("4")
    said = several(run, "digits", *settings, count=first, code=STOPPED)
    assert len(said) == 1
    assert f"mirada resume {run}" in said[0]
    Path(f"{run}.stop").unlink()
    assert several(run, "digits", count=second) == []
    assert_same(RunFolder(run), train("digits", settings=SHARED, out=tmp_path / "whole"))


@pytest.mark.long
def test_a_killed_process_ends_all_with_one_sentence_and_the_run_goes_on(tmp_path):
    run, settings = tmp_path / "run", (*SHARED, "train.steps=60", "train.checkpoint_seconds=1e-6")
    Path(f"{run}.slow").touch()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", str(SCRIPT)]
    launcher = subprocess.Popen(
        [*command, str(run), "digits", *settings], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    state = RunFolder(run).state
    while not state.exists():
        assert launcher.poll() is None
        time.sleep(0.2)
    os.kill(int(Path(f"{run}.1").read_text()), signal.SIGKILL)
    killed = time.monotonic()
    error = launcher.communicate(timeout=120)[1]
    assert launcher.returncode not in (0, None)
    assert time.monotonic() - killed < 60
    said = [line for line in error.splitlines() if line.startswith("mirada: ")]
    assert len(said) == 1
    assert "one of the 2 processes" in said[0]
    assert "Up to step" in said[0]
    assert f"mirada resume {run}" in said[0]
    Path(f"{run}.slow").unlink()
    several(run, "digits")
    whole = tmp_path / "whole"
    several(whole, "digits", *settings)
    assert (run / "best/model.safetensors").read_bytes() == (whole / "best/model.safetensors").read_bytes()
    assert numbers(RunFolder(run)) == numbers(RunFolder(whole))


@pytest.mark.long
def test_hidden_words_are_weighed_by_how_many_are_asked_for(tmp_path):
    words = "the cat sat on a mat while dogs ran after it over green hills and far away".split()
    lines = [" ".join(words[n % 7 : n % 7 + 2 + n % 9]) for n in range(150)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    settings = ("train.steps=5", "train.evaluations=2", "train.device=cpu", "baseline.name=none", "train.batch_size=7")
    settings = (*settings, "system.name=bert", "system.arguments.dim=16", "system.arguments.depth=1")
    settings = (*settings, "system.arguments.num_heads=2", "system.arguments.dropout=0.0", "text.max_length=16")
    several(tmp_path / "two", tmp_path / "text.txt", *settings)
    assert_same(RunFolder(tmp_path / "two"), train(tmp_path / "text.txt", settings=settings, out=tmp_path / "one"))


@pytest.mark.long
def test_minutes_become_the_same_steps_in_all_and_the_opponent_trains_too(tmp_path):
    settings = [word for word in SHARED if not word.startswith(("train.steps", "baseline"))]
    several(tmp_path / "run", "digits", *settings, "train.minutes=0.02", "baseline.size=nano")
    folder = RunFolder(tmp_path / "run")
    assert folder.baseline.is_finished
    assert folder.read_result()["steps"] > 0


def test_what_cannot_be_shared_out_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(MiradaError, match="torchrun started 3"):
        require_one("`mirada predict`")
    config = resolve({"data": {"source": "digits"}, "distil": {"teacher": "x"}, "train": {"class_weights": True}})
    digits = prepare_data(config.data, config.system)
    with pytest.raises(MiradaError, match="divide differently"):
        require_shareable(config, digits)
    object.__setattr__(digits, "inputs", "masks")
    with pytest.raises(MiradaError, match="learned by one process"):
        require_shareable(config, digits)


def test_shares_are_dealt_and_one_process_is_all():
    assert [list(Processes(rank, 3).share(range(7))) for rank in range(3)] == [[0, 3, 6], [1, 4], [2, 5]]
    alone = Processes()
    assert alone.gathered([1, 2]) == [1, 2]
    assert alone.sums(1.5, 2.0) == (1.5, 2.0)
    assert alone.any(True, False) == (True, False)
    assert alone.as_first("a") == alone.by_first(lambda: "a") == "a"
