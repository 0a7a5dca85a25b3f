"""What every group of routes is given: the folder of runs, the models in memory, and what goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mirada.serve.models import Models
from mirada.serve.refusals import Refused
from mirada.studio.kept import KeptLooks
from mirada.studio.processes import Trainings
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained
from mirada.verbs.runs import is_run

MAX_NAME = 255
MAX_WAITING = 16  # requests that compute or wait for their turn: more would take all threads of the server
SECONDS_TO_WAIT = 60.0


class Refusal(BaseModel):
    """Why a request is not answered."""

    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal} for status in (400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503)
}


@dataclass(frozen=True)
class Studio:
    """Of one server. Names of runs come from the network: `run` is the only way from a name to a folder."""

    folder: Path
    models: Models
    trainings: Trainings = field(default_factory=lambda: Trainings(1))
    looks: KeptLooks = field(default_factory=KeptLooks)
    _locks: dict[Path, threading.Lock] = field(default_factory=dict)
    _places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MAX_WAITING))

    def run(self, name: str) -> RunFolder:
        """The run of that name, directly below the folder; whatever else a name may lead to is answered with 404."""
        found = RunFolder(self.folder / name) if is_plain(name) else None
        if found is None or not is_inside(found.path, self.folder) or not is_run(found):
            raise Refused(404, f"there is no run of the name {name[:80]!r} in the folder of this studio.")
        return found

    @contextmanager
    def model(self, run: RunFolder) -> Iterator[Trained]:
        """The model of a run, for one thread at a time: hooks and gradients are the model's own."""
        with self.one_at_a_time(run):
            yield self.models.get(run.path)

    @contextmanager
    def one_at_a_time(self, run: RunFolder) -> Iterator[None]:
        """While one thread computes with the model of a run, others wait, but not many and not for long."""
        if not self._places.acquire(blocking=False):
            raise Refused(503, "the studio has too much to compute just now; try again in a moment.")
        try:
            lock = self._locks.setdefault(run.path, threading.Lock())
            if not lock.acquire(timeout=SECONDS_TO_WAIT):
                raise Refused(503, f"the model of {run.path.name} is still busy with something else; try again later.")
            try:
                yield
            finally:
                lock.release()
        finally:
            self._places.release()


def is_plain(name: str) -> bool:
    """A name of one folder: no separators, no way up, nothing that is not printed."""
    return (
        bool(name)
        and len(name.encode(errors="replace")) <= MAX_NAME
        and name not in (".", "..")
        and name.isprintable()
        and not set(name) & set("/\\\0")
    )


def is_inside(path: Path, folder: Path) -> bool:
    """Also after all links have been followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):  # missing, a loop of links, or no name of a file
        return False
