"""What a map remembers in its GeoTIFF: the run, its weights, and the rasters it was made from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KEY = "MIRADA"  # of the one tag, whose value is JSON


@dataclass(frozen=True)
class MapTags:
    run: str  # the name of its folder
    model: str  # RunPredictor.identity: of the weights and of what was asked for
    target: str
    rasters: tuple[str, ...] = ()  # as seen from the map's folder, so that both can move together
    samples: int = 0
    constants: dict[str, float] = field(default_factory=dict)

    def written(self) -> dict[str, str]:
        return {KEY: json.dumps(asdict(self))}

    def raster_paths(self, map_path: Path) -> list[Path]:
        return [map_path.parent / raster for raster in self.rasters]


def seen_from(map_path: Path, rasters: Sequence[str | os.PathLike]) -> tuple[str, ...]:
    """Paths of the rasters, relative to the folder of the map where that is possible."""
    return tuple(_relative(Path(raster).resolve(), map_path.resolve().parent) for raster in rasters)


def tags_of(dataset: Any) -> MapTags | None:
    """Of an open map; None if it has none, or not ours: a file may say anything."""
    try:
        found = json.loads(dataset.tags().get(KEY, "null"))
        if not isinstance(found, dict):
            return None
        tags = MapTags(
            run=str(found["run"]),
            model=str(found["model"]),
            target=str(found["target"]),
            rasters=tuple(map(str, found["rasters"])),
            samples=int(found["samples"]),
            constants={str(name): float(value) for name, value in dict(found["constants"]).items()},
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return tags


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return str(path)
