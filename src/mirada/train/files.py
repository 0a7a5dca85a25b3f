"""Files that are either the old ones or the new ones, never half: written beside, synced, then renamed."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from mirada.errors import MiradaError

# A quota is a disk of one's own.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
PARTIAL = ".partial"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside `path`, which then takes its place."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise MiradaError(why_unwritable(path, error)) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def remove_partials(folder: Path) -> None:
    """What a process left below the folder that was killed while it wrote."""
    for partial in folder.rglob(f".*{PARTIAL}"):
        with contextlib.suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: object) -> None:
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MiradaError(f"{path}: there is no such file; is this the folder of a run?") from error
    except (OSError, ValueError) as error:
        raise MiradaError(f"{path}: cannot be read as JSON ({error}); restore it or train again.") from error


def why_unwritable(path: object, error: OSError) -> str:
    if error.errno in NO_SPACE:
        return (
            f"{path}: the disk is full; free some space and try again (a run goes on with `mirada resume`), "
            "what was saved before is intact."
        )
    return f"{path}: cannot be written ({error.strerror or error}); choose another folder or free this one."
