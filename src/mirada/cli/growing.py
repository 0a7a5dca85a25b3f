"""Files that grow line by line and take their name when they are whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import PARTIAL, why_unwritable


@contextmanager
def growing(path: Path) -> Iterator[Callable[[str], None]]:
    """A function that adds a line to `path`.partial, which becomes `path` at the end.

    Ctrl-C leaves the finished lines there and says so; any other failure leaves nothing.
    """
    partial = Path(f"{path}{PARTIAL}")
    if path.is_dir():
        raise MiradaError(f"{path}: is a folder; give the name of a file in it.")
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(partial, "w", encoding="utf-8", newline="\n", buffering=1)  # noqa: SIM115 (closed below)

    def add(line: str) -> None:
        with _told(path):
            file.write(f"{line}\n")

    is_kept = False
    try:
        yield add
        with _told(path):
            os.fsync(file.fileno())
            file.close()
            os.replace(partial, path)
    except KeyboardInterrupt:
        is_kept = True
        print(f"mirada: {path} is not complete; the lines that are finished are in {partial}.", file=sys.stderr)
        raise
    finally:
        with suppress(OSError):  # a full disk has been told
            file.close()
        if not is_kept:
            partial.unlink(missing_ok=True)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MiradaError(why_unwritable(path, error)) from error
