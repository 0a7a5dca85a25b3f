"""A disk that fills up in the middle of a run, and one that may not be written: a sentence, and nothing is lost."""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mirada
from mirada.cli.failures import explained
from mirada.errors import MiradaError
from mirada.train.checkpoint import load_header, load_tensors, save_tensors
from mirada.train.files import remove_partials
from mirada.train.folder import RunFolder, new_run
from mirada.train.loop import Progress
from mirada.verbs.logs import logging_to
from mirada.verbs.train import Watcher, resume, train
from tests.train.small_disk import SmallDisk, fill
from tests.train.test_resume import SETTINGS, no_report, outcome, untouched

__all__ = ["no_report", "untouched"]  # fixtures of the resumed runs, here too

ROOT = Path(__file__).resolve().parents[2]
KILOBYTES = 2_000
SOME = 10 << 12  # bytes: enough for the metrics, too little for the state
TWO_IMAGES = np.zeros((2, 8, 8, 1), dtype=np.uint8)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    try:
        small = SmallDisk(tmp_path, KILOBYTES)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here, so NOTHING ABOUT FULL DISKS IS TESTED: {error}")
    yield small
    small.close()


class FillAt(Watcher):
    """Another program takes what is left of the disk, at some step: after its evaluation, before it is saved."""

    def __init__(self, step: int, filler: Path, spare: int = 0) -> None:
        self.step, self.filler, self.spare = step, filler, spare

    def advances(self, progress: Progress) -> None:
        if progress.step == self.step:
            fill(self.filler, self.spare)


def files_of(folder: Path) -> set[str]:
    """All but progress.json, which says why a run failed where there is room for it."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return files - {"progress.json"}


@pytest.mark.parametrize(
    ("step", "spare", "refused"),
    [
        (1, 0, "last/state.safetensors"),
        (6, 0, "metrics.csv"),
        (6, SOME, "last/state.safetensors"),  # the metrics are a row ahead of the state
        (11, SOME, "last/state.safetensors"),
        (24, 0, "metrics.csv"),
    ],
)
def test_disk_that_fills_up_then_resume_equals_never_having_stopped(untouched, disk, step, spare, refused, capfd):
    run, filler = RunFolder(disk.path / "run"), disk.path / "filler"
    with pytest.raises(MiradaError, match=rf"{re.escape(refused)}: the disk is full; .*mirada resume.* is intact"):
        train("digits", settings=SETTINGS, out=run.path, watcher=FillAt(step, filler, spare))
    assert capfd.readouterr().err == ""
    saved = {"config.yaml", "data.json", "log.txt", "metrics.csv", "best/model.json"}
    saved |= {"last/state.safetensors"} if step > 1 else set()
    saved |= {"best/model.safetensors"} if step >= 6 else set()
    assert files_of(run.path) == saved
    if step > 1:
        assert load_header(run.state)["step"] == step - 1
        assert all(tensor.isfinite().all() for tensor in load_tensors(run.state).values())
    if step >= 6:
        assert len(mirada.load(run.path).predict(TWO_IMAGES)) == 2
    filler.unlink()
    assert outcome(resume(run.path)) == outcome(untouched)


def test_log_without_space_neither_fails_nor_prints_a_traceback(untouched, disk, capfd):
    """Full before the first line is logged: the first evaluation logs, and then fails to keep its weights."""
    run, filler = RunFolder(disk.path / "run"), disk.path / "filler"

    class FillBeforeTraining(Watcher):
        def starts(self, what: str, steps: int) -> None:
            fill(filler)

    late = (*SETTINGS, "train.checkpoint_seconds=1e6")
    with pytest.raises(MiradaError, match=r"best/model\.safetensors: the disk is full"):
        train("digits", settings=late, out=run.path, watcher=FillBeforeTraining())
    assert capfd.readouterr().err == ""
    assert run.log.read_text() == ""
    filler.unlink()
    assert outcome(resume(run.path)) == outcome(untouched)


def test_log_waits_for_space_and_says_what_it_lost(disk, caplog):
    log, filler, logger = disk.path / "log.txt", disk.path / "filler", logging.getLogger("mirada.test")
    with logging_to(log):
        fill(filler)
        logger.info("first")
        filler.unlink()
        logger.info("second")
    assert [line.split(": ")[1] for line in log.read_text().splitlines()] == ["first", "second"]
    assert not caplog.records[2:]
    log.unlink()
    with logging_to(log):
        fill(filler)
        logger.info("lost")
    assert caplog.records[-1].getMessage() == f"{log}: its last lines could not be written (No space left on device)."


@pytest.mark.long
def test_command_on_a_disk_that_fills_up(untouched, disk):
    run, filler = RunFolder(disk.path / "run"), disk.path / "filler"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

    def command(*words: object) -> subprocess.CompletedProcess:
        line = [str(word) for word in (sys.executable, *words)]
        return subprocess.run(line, env=environment, capture_output=True, text=True)

    crowded = Path(__file__).with_name("crowded_disk.py")
    ended = command(crowded, 11, filler, "train", "digits", *SETTINGS, "--out", run.path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"mirada: {run.metrics}: the disk is full; ") and ended.stderr.count("\n") == 1
    # Without space there is no going on, and trying to harms nothing.
    again = command("-m", "mirada", "resume", run.path)
    assert again.returncode == 2
    assert again.stderr.startswith(f"mirada: {run.path}") and again.stderr.count("\n") == 1
    assert load_header(run.state)["step"] == 10
    filler.unlink()
    last = command("-m", "mirada", "resume", run.path)
    assert (last.returncode, last.stderr) == (0, "")
    assert outcome(run) == outcome(untouched)
    assert run.report.exists()


def test_output_to_a_full_disk_is_one_sentence():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "mirada", "presets"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("mirada: the output of this command: the disk is full; ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left", "a.txt"), "a.txt: the disk is full; free some space"),
        (OSError(errno.EDQUOT, "Quota exceeded", "a.txt"), "a.txt: the disk is full; free some space"),
        (OSError(errno.EROFS, "Read-only file system", "a.txt"), "a.txt: cannot be written (Read-only file system); "),
        (PermissionError(errno.EACCES, "Permission denied", "a.txt"), "a.txt: permission denied; change its rights"),
    ],
)
def test_what_the_system_refuses_is_no_surprise(error, sentence):
    said, code = explained(error)
    assert said.startswith(sentence) and code == 2


# Folders that may not be written. The superuser may write everywhere, but not on a disk that is mounted read-only.


def test_locked_disk_is_refused_before_training(disk):
    disk.lock()
    for out, settings in ((disk.path / "run", ()), (None, (f"runs={disk.path}",))):
        with pytest.raises(MiradaError, match=r"Read-only file system\); give another"):
            train("digits", settings=(*SETTINGS, *settings), out=out, watcher=Watcher())
    assert not list(disk.path.iterdir())


def test_run_on_a_locked_disk_cannot_be_resumed_and_stays_as_it_is(disk):
    run, filler = RunFolder(disk.path / "run"), disk.path / "filler"
    with pytest.raises(MiradaError, match="the disk is full"):
        train("digits", settings=SETTINGS, out=run.path, watcher=FillAt(11, filler))
    filler.unlink()
    before = {name: (run.path / name).read_bytes() for name in files_of(run.path)}
    disk.lock()
    with pytest.raises(MiradaError, match=r"log\.txt: cannot be written \(Read-only file system\)"):
        resume(run.path)
    assert {name: (run.path / name).read_bytes() for name in files_of(run.path)} == before
    assert len(mirada.load(run.path).predict(TWO_IMAGES)) == 2


def test_runs_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(MiradaError, match=r"run: cannot be made \(Not a directory\); give another folder with --out"):
        new_run(tmp_path / "file" / "runs", "run")


def test_runs_folder_that_may_not_be_searched_is_refused(tmp_path, monkeypatch):
    def refused(self: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", refused)
    with pytest.raises(MiradaError, match=r"cannot be made \(Permission denied\)"):
        new_run(tmp_path, "run")


# What writing leaves


def test_weights_may_be_read_by_whoever_may_read_the_rest(tmp_path):
    save_tensors(tmp_path / "model.safetensors", {})
    (tmp_path / "plain").write_text("")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in sorted(tmp_path.iterdir())]
    assert modes[0] == modes[1]


def test_resuming_removes_what_a_kill_left_half_written(untouched, tmp_path: Path):
    run = RunFolder(tmp_path / "run")

    class Kill(Watcher):
        def advances(self, progress: Progress) -> None:
            if progress.step == 5:
                (run.last / ".state.safetensors.1.partial").write_bytes(b"half")
                (run.path / ".metrics.csv.1.partial").write_bytes(b"half")
                raise RuntimeError("kill")

    with pytest.raises(RuntimeError):
        train("digits", settings=SETTINGS, out=run.path, watcher=Kill())
    assert outcome(resume(run.path)) == outcome(untouched)
    assert not [name for name in files_of(run.path) if "partial" in name]


def test_only_partial_files_are_removed(tmp_path):
    for name in (".a.partial", "b.partial", ".c", "d"):
        (tmp_path / name).write_text("")
    remove_partials(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".c", "b.partial", "d"]
