"""What every group of routes is given: the folder of runs, and the models in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mirada.serve.models import Models
from mirada.serve.refusals import Refused
from mirada.train.folder import RunFolder

MAX_NAME = 255


@dataclass(frozen=True)
class Studio:
    """Of one server. Names of runs come from the network: `run` is the only way from a name to a folder."""

    folder: Path
    models: Models
    _locks: dict[Path, threading.Lock] = field(default_factory=dict)

    def run(self, name: str) -> RunFolder:
        """The run of that name, directly below the folder; whatever else a name may lead to is answered with 404."""
        found = RunFolder(self.folder / name) if is_plain(name) else None
        if found is None or not is_inside(found.path, self.folder) or not found.config.is_file():
            raise Refused(404, f"There is no run of the name {name[:80]!r} in the folder of this studio.")
        return found

    @contextmanager
    def one_at_a_time(self, run: RunFolder) -> Iterator[None]:
        """While one thread computes with the model of a run, others wait: hooks and gradients are the model's own."""
        with self._locks.setdefault(run.path, threading.Lock()):
            yield


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
    except (OSError, RuntimeError):  # missing, or a loop of links
        return False
