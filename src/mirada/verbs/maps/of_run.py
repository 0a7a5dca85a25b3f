"""Which maps a run has: those in its folder, and those beside it that remember it."""

from __future__ import annotations

from pathlib import Path

from mirada.errors import MiradaError
from mirada.verbs.maps.web_map import WebMap, web_map

FOLDER = "maps"  # of a run


class NoMap(MiradaError):
    """There is no map of this name."""


def maps_of(run: Path, runs: Path) -> dict[str, WebMap]:
    """By name: maps/x.tif and x.tif of the run's folder, and, of the folder of all runs, those that name this run.

    A link that leads out of the folder of all runs is not followed.
    """
    found: dict[str, WebMap] = {}
    for name, path in _candidates(run, runs).items():
        opened = _own_map(path, run, runs)
        if opened is not None:
            found[name] = opened
    return found


def map_of(run: Path, runs: Path, name: str) -> WebMap:
    """The one of this name; nothing else can be opened by any name."""
    path = _candidates(run, runs).get(name)
    found = None if path is None else _own_map(path, run, runs)
    if found is None:
        raise NoMap(f"{run.name} has no map {name[:80]!r}; `mirada map` makes one.")
    return found


def _own_map(path: Path, run: Path, runs: Path) -> WebMap | None:
    if not path.resolve().is_relative_to(runs.resolve()):
        return None
    try:
        opened = web_map(path)
    except MiradaError:  # another GeoTIFF, or one that is being written
        return None
    is_own = path.is_relative_to(run) or (opened.tags is not None and opened.tags.run == run.resolve().name)
    return opened if is_own else None


def _candidates(run: Path, runs: Path) -> dict[str, Path]:
    own = [path for folder in (run / FOLDER, run) for path in _tiffs(folder)]
    named = {path.relative_to(run).as_posix(): path for path in own}
    for path in _tiffs(runs):
        named.setdefault(f"{runs.resolve().name}/{path.name}", path)
    return named


def _tiffs(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (".tif", ".tiff") and ".unfinished" not in path.suffixes and path.is_file()
    )
