"""Trainings that the studio started: each a process of its own, with everything it prints in the run's folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from mirada.serve.refusals import Refused
from mirada.train.folder import RunFolder
from mirada.train.live import forget, read_heartbeat, write_failure
from mirada.verbs.request import new_request
from mirada.verbs.runs import facts_of, last_lines

SECONDS_TO_STOP = 15.0  # that a request waits for a training to save what it has
SECONDS_TO_END = 60.0  # that the studio waits for its trainings when it ends
STOPPED = (0, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)


class Trainings:
    """At most `at_once` of them. Started, stopped and resumed by command lines that are made here, never by a shell."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._running: dict[Path, subprocess.Popen] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def has(self, run: RunFolder) -> bool:
        process = self._running.get(_key(run))
        return process is not None and process.poll() is None

    def start(self, runs: Path, given: dict) -> RunFolder:
        with self._lock:
            self._require_room()
            run = new_request(runs, given)
            self._begin(run, _train_words(run))
        return run

    def resume(self, run: RunFolder) -> None:
        with self._lock:
            facts = facts_of(run)
            if self.has(run) or facts.status == "training":
                raise Refused(409, f"{run.path.name} is training already.")
            if facts.status == "finished":
                raise Refused(409, f"{run.path.name} is finished; there is nothing to go on with.")
            self._require_room()
            forget(run.progress)  # what it says of an earlier failure
            words = ["resume", str(run.path.resolve())] if run.config.exists() else _train_words(run)
            self._begin(run, words)

    def stop(self, run: RunFolder) -> None:
        """Everything is saved; waits for that, but not for long."""
        process = self._running.get(_key(run))
        if process is None or process.poll() is not None:
            is_training = facts_of(run).status == "training"
            where = "was not started by this studio: stop it where it was, with Ctrl-C"
            raise Refused(409, f"{run.path.name} {where if is_training else 'is not training'}.")
        process.terminate()
        with suppress(subprocess.TimeoutExpired):  # it will end after its step
            process.wait(SECONDS_TO_STOP)

    def close(self) -> None:
        """Asks all to stop, and waits while they save."""
        with self._lock:
            self._is_closed = True
        for process in (alive := [one for one in self._running.values() if one.poll() is None]):
            process.terminate()
        for process in alive:
            with suppress(subprocess.TimeoutExpired):  # it has been told, and goes on to save without us
                process.wait(SECONDS_TO_END)

    def _require_room(self) -> None:
        if self._is_closed:
            raise Refused(503, "the studio is ending; start it again first.")
        num = sum(process.poll() is None for process in self._running.values())
        if num >= self.at_once:
            what = "a training is" if num == 1 else f"{num} trainings are"
            raise Refused(429, f"{what} running already; wait for it, stop it, or start `mirada studio --trainings N`.")

    def _begin(self, run: RunFolder, words: list[str]) -> None:
        run.asked.mkdir(exist_ok=True)
        with open(run.asked / "output.txt", "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "mirada", *words, "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal of the studio is for the studio, which then asks it
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._running[_key(run)] = process
        threading.Thread(target=_write_down, args=(run, process), daemon=True).start()


def _train_words(run: RunFolder) -> list[str]:
    path = run.path.resolve()
    return ["train", "--config", str(RunFolder(path).asked / "settings.yaml"), "--out", str(path)]


def _key(run: RunFolder) -> Path:
    return run.path.resolve()


def _write_down(run: RunFolder, process: subprocess.Popen) -> None:
    """Why it failed, where its process could not: it was killed, or it failed before there was a run."""
    code = process.wait()
    heartbeat = read_heartbeat(run)
    if code in STOPPED or (heartbeat is not None and heartbeat.failure is not None):
        return
    said = [line.removeprefix("mirada: ") for line in last_lines(run.asked / "output.txt", 1)]
    ended = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with exit code {code}"
    write_failure(run, said[0] if said and code > 0 else f"{ended}; is there enough memory?")
