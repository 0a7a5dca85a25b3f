"""progress.json: how far a run is, written about once a second into its folder for whoever looks.

It is there while a process trains, and after one that failed or was killed; a run that ends or is stopped removes it.
Nothing depends on it: what cannot be written is not written, and `resume` does not read it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import PARTIAL
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.train.stopping import Stopped

SECONDS_BETWEEN = 1.0
SECONDS_ALIVE = 600.0  # of a process on another machine, whose number tells nothing here: an evaluation may take long
TOLD = ("step", "steps", "epoch", "samples", "seconds", "train_loss", "learning_rate")


@dataclass(frozen=True)
class Heartbeat:
    """What progress.json says: of whom, when, and how far it is or why it failed."""

    content: dict

    @property
    def failure(self) -> str | None:
        found = self.content.get("failure")
        return None if found is None else str(found)

    @property
    def is_alive(self) -> bool:
        """Whether the process that wrote it still trains."""
        if self.failure is not None:
            return False
        if self.content.get("host") != socket.gethostname():
            return time.time() - _number(self.content.get("time")) < SECONDS_ALIVE
        pid = self.content.get("pid")
        return isinstance(pid, int) and pid > 0 and _is_running(pid, self.content.get("began"))


class Live:
    """The writer of one run. Of several processes that train together, the first one tells."""

    def __init__(self, folder: RunFolder) -> None:
        self.path, self.what, self._written = folder.progress, "model", 0.0
        self.is_told = os.environ.get("RANK", "0") == "0"
        self._who = {"pid": os.getpid(), "host": socket.gethostname(), "began": began(os.getpid())}

    def begins(self, what: str) -> None:
        """The model, its baseline, or a fold of a validation."""
        self.what = what
        self._write({})

    def advances(self, progress: Progress) -> None:
        is_last = progress.step >= progress.steps
        if is_last or time.monotonic() - self._written >= SECONDS_BETWEEN:
            self._write({name: getattr(progress, name) for name in TOLD})

    def fails(self, sentence: str) -> None:
        self.ends()  # what no longer is so goes, also where a full disk refuses what takes its place
        self._write({"failure": sentence})

    def ends(self) -> None:
        if self.is_told:
            forget(self.path)

    def _write(self, content: dict) -> None:
        if self.is_told:
            self._written = time.monotonic()
            _write(self.path, {"what": self.what, **content, **self._who, "time": time.time()})


@contextmanager
def told_live(folder: RunFolder) -> Iterator[Live]:
    """Within this context the run is seen to train; what ends it with an error is written down."""
    live = Live(folder)
    live.begins("model")
    try:
        yield live
    except (Stopped, KeyboardInterrupt, GeneratorExit):
        live.ends()
        raise
    except BaseException as error:
        live.fails(_sentence(error))
        raise
    live.ends()


def read_heartbeat(folder: RunFolder) -> Heartbeat | None:
    try:
        content = json.loads(folder.progress.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Heartbeat(content) if isinstance(content, dict) else None


def write_failure(folder: RunFolder, sentence: str) -> None:
    """Of a process that could not do so itself."""
    _write(folder.progress, {"failure": sentence, "time": time.time()})


def forget(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _write(path: Path, content: dict) -> None:
    """Whole or not at all; not synced, as it is worth nothing after a power cut."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        partial.write_text(json.dumps(content), encoding="utf-8")
        os.replace(partial, path)
    except OSError:
        forget(partial)


def began(pid: int) -> str | None:
    """When a process began, in ticks of the kernel: numbers of processes are used again. None where it is not told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _is_running(pid: int, since: object) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # it is another user's
    except (OSError, OverflowError):
        return False
    now = began(pid)
    return now is None or since is None or now == since


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _sentence(error: BaseException) -> str:
    if isinstance(error, MiradaError):
        return str(error)
    reason = " ".join(str(error).split())[:200]
    return f"unexpected {type(error).__name__} ({reason})"
