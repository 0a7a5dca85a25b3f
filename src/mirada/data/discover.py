"""Find image files below a folder, in a fixed order, through links and odd names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mirada.data.decode import EXTENSIONS
from mirada.errors import MiradaError

_IGNORED_FOLDERS = {"__MACOSX", "__pycache__"}


def is_image_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in EXTENSIONS


def find_images(folder: str | os.PathLike) -> list[Path]:
    """All image files below a folder, sorted. Each real folder is entered once, so link loops end."""
    return sorted(_walk(Path(folder), set()))


def has_images(folder: Path) -> bool:
    """Whether there is at least one image file below; stops at the first."""
    return next(_walk(folder, set()), None) is not None


def images_directly_in(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder) if is_image_name(entry.name) and not _is_folder(entry)]


def folders_in(folder: Path) -> list[Path]:
    """Visible sub-folders (links to folders too), sorted."""
    return [Path(entry.path) for entry in _entries(folder) if _is_folder(entry)]


def _walk(folder: Path, visited: set[tuple[int, int]]) -> Iterator[Path]:
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in visited:
        return
    visited.add((status.st_dev, status.st_ino))
    for entry in _entries(folder):
        if _is_folder(entry):
            yield from _walk(Path(entry.path), visited)
        elif is_image_name(entry.name):
            yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            visible = [e for e in entries if not e.name.startswith(".") and e.name not in _IGNORED_FOLDERS]
    except OSError as error:
        raise MiradaError(f"{folder}: the folder cannot be read ({error.strerror}).") from None
    return sorted(visible, key=_entry_name)


def _entry_name(entry: os.DirEntry) -> str:
    return entry.name


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir() and not _leads_back_up(entry)
    except OSError:  # a link that points at itself
        return False


def _leads_back_up(entry: os.DirEntry) -> bool:
    """A link to a folder that it lies in would give one class the images of all."""
    if not entry.is_symlink():
        return False
    target, here = Path(os.path.realpath(entry.path)), Path(os.path.realpath(os.path.dirname(entry.path)))
    return target == here or target in here.parents
