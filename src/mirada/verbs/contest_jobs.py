"""The trainings of a comparison: in this process one after the other, or several at a time in processes of their own.

Steps are counted before, so trainings that share the cores end later, but in the same place.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from mirada.compare.contest import Contest, ContestFolder, Entrant
from mirada.errors import MiradaError
from mirada.train.files import read_json
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.contest_steps import settings_of
from mirada.verbs.stages import Watcher
from mirada.verbs.train import resume, train

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Job:
    """One training of a comparison."""

    folder: ContestFolder
    contest: Contest
    entrant: Entrant
    seed: int

    @property
    def name(self) -> str:
        return f"{self.entrant.label}, seed {self.seed}"

    @property
    def run(self) -> RunFolder:
        return self.folder.run(self.entrant, self.seed)

    def carry_out(self, watcher: Watcher, stop: StopRequest | None) -> None:
        """Begin, or go on with what was begun."""
        if self.run.config.exists():
            resume(self.run.path, watcher=watcher, stop=stop)
            return
        measured = read_json(self.folder.steps)[self.entrant.label]
        length = [] if measured["steps"] is None else [f"train.steps={measured['steps']}"]
        decided = [*length, *measured.get("settings", [])]
        train(
            self.contest.source,
            system=self.entrant.system,
            preset=self.contest.preset,
            settings=[*settings_of(self.contest, self.entrant), *decided, f"train.seed={self.seed}"],
            out=self.run.path,
            watcher=watcher,
            stop=stop,
        )


def unfinished(folder: ContestFolder, contest: Contest) -> list[Job]:
    """Seed by seed, so that all entrants are through with one before the next begins."""
    jobs = [Job(folder, contest, entrant, seed) for seed in range(contest.seeds) for entrant in contest.parsed()]
    return [job for job in jobs if not job.run.is_finished]


def carry_out_here(jobs: list[Job], watcher: Watcher, stop: StopRequest | None) -> Iterator[Job]:
    """One after the other; yields each when it is through."""
    for job in jobs:
        watcher.says(job.name)
        job.carry_out(watcher, stop)
        yield job


def carry_out_beside(jobs: list[Job], at_once: int, watcher: Watcher, stop: StopRequest | None) -> Iterator[Job]:
    """`at_once` processes at a time, which share the threads; yields each job when it is through."""
    threads = str(max(1, torch.get_num_threads() // at_once))
    environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    waiting, running = list(jobs), dict[Job, subprocess.Popen]()
    with stop or StopRequest() as request:
        try:
            while waiting or running:
                while waiting and len(running) < at_once and not request.is_requested:
                    job = waiting.pop(0)
                    watcher.says(job.name)
                    command = [sys.executable, "-m", __name__, str(job.folder.path), job.entrant.label, str(job.seed)]
                    # In a session of its own: Ctrl-C is for this process, which passes it on once.
                    running[job] = subprocess.Popen(command, env=environment, start_new_session=True)
                time.sleep(SECONDS_BETWEEN_LOOKS)
                if request.is_requested:
                    raise Stopped("Stopped.", 128 + (request.signal or signal.SIGINT))
                for job in [job for job, process in running.items() if process.poll() is not None]:
                    _require_success(job, running.pop(job).returncode)
                    watcher.says(f"{job.name}: {job.run.read_result()['value']:.4f}")
                    yield job
        finally:
            for process in running.values():
                process.terminate()  # it saves what it has
            for process in running.values():
                process.wait()


def _require_success(job: Job, code: int) -> None:
    if code or not job.run.is_finished:
        raise MiradaError(
            f"{job.name}: its training ended with code {code}; {job.run.log} and the lines above say why."
        )


class StopsWithItsParent(Watcher):
    """A training whose comparison was killed saves and ends, before the next call takes its folder up again."""

    def __init__(self, stop: StopRequest) -> None:
        self.stop, self.parent = stop, os.getppid()

    def advances(self, progress: Progress) -> None:
        if os.getppid() != self.parent:
            self.stop.request(signal.SIGTERM)


def main(path: str, label: str, seed: str) -> None:
    """One job of the comparison in the folder `path`."""
    folder = ContestFolder(Path(path))
    contest = folder.read()
    entrant = next(entrant for entrant in contest.parsed() if entrant.label == label)
    stop = StopRequest()
    try:
        Job(folder, contest, entrant, int(seed)).carry_out(StopsWithItsParent(stop), stop)
    except Stopped as stopped:
        sys.exit(stopped.exit_code)
    except MiradaError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
