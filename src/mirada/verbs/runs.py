"""What there is to tell of a run folder, whatever state it is in: written just now, stopped, or broken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import yaml

from mirada.errors import MiradaError
from mirada.report.wording import metric_title
from mirada.train.files import read_json
from mirada.train.folder import RunFolder
from mirada.train.live import TOLD, Heartbeat, read_heartbeat

Status = Literal["training", "stopped", "finished", "failed"]
TAIL = 64 * 1024  # bytes of a log of which the last lines are told
LONGEST_LINE = 2000


@dataclass(frozen=True)
class Score:
    name: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RunFacts:
    """The files of a run that are small, as far as they can be read."""

    folder: RunFolder
    config: dict
    data: dict
    result: dict
    heartbeat: Heartbeat | None

    @property
    def status(self) -> Status:
        if self.heartbeat is not None and self.heartbeat.is_alive:
            return "training"
        if self.failure is not None:
            return "failed"
        return "finished" if self.result and not self._lacks_baseline else "stopped"

    @property
    def failure(self) -> str | None:
        """Why it ended, if that was an error."""
        return None if self.heartbeat is None else self.heartbeat.failure

    @property
    def task(self) -> str:
        return str(self.data.get("task") or self.section("data").get("task") or "")

    @property
    def inputs(self) -> str:
        """Of one that has not read its data yet, what most are on."""
        return str(self.data.get("inputs") or "image")

    @property
    def source(self) -> str:
        return str(self.data.get("source") or self.section("data").get("source") or "")

    @property
    def system(self) -> str:
        return str(self.section("system").get("name") or "")

    @property
    def size(self) -> str | None:
        found = self.section("system").get("size")
        return None if found is None else str(found)

    @property
    def num_parameters(self) -> int | None:
        found = self.result.get("num_parameters")
        if found is None:
            found = _read(self.folder.best / "model.json").get("num_parameters")
        return found if isinstance(found, int) else None

    @property
    def seconds(self) -> float | None:
        """Spent in training steps of the model itself."""
        found = finite(self.result.get("seconds_training"))
        if found is None:
            seconds = metrics_of(self.folder).get("seconds", [])
            found = seconds[-1] if seconds else None
        return found

    @property
    def score(self) -> Score | None:
        return score_of(self.result)

    @property
    def baseline(self) -> tuple[str, Score] | None:
        """The opponent's system, and what it reached."""
        result = _read(self.folder.baseline.result)
        found = score_of(result)
        return None if found is None else (str(result.get("system") or ""), found)

    @property
    def changed(self) -> datetime:
        files = [self.folder.config, self.folder.metrics, self.folder.log, self.folder.progress, self.folder.result]
        times = [found for file in (*files, self.folder.path, self.folder.report) if (found := _time_of(file))]
        return datetime.fromtimestamp(max(times, default=0.0), timezone.utc)

    @property
    def has_model(self) -> bool:
        return (self.folder.best / "model.safetensors").is_file()

    @property
    def classes(self) -> list[str]:
        found = self.data.get("class_names", self.data.get("target_names"))
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def image_size(self) -> tuple[int, int] | None:
        match self.data.get("image_size"):
            case [int(height), int(width)]:
                return height, width
        return None

    @property
    def progress(self) -> dict | None:
        """How far a run is that trains now; none of it before its first step."""
        if self.heartbeat is None or not self.heartbeat.is_alive:
            return None
        told = self.heartbeat.content
        numbers = {name: finite(told.get(name)) for name in TOLD}
        if any(value is None for value in numbers.values()):
            return None
        step, steps, seconds, samples = (float(numbers[name] or 0) for name in ("step", "steps", "seconds", "samples"))
        return {
            "what": str(told.get("what", "model")),
            **numbers,
            "seconds_left": max(0.0, steps - step) * seconds / max(step, 1.0),
            "samples_per_second": samples / seconds if seconds > 0 else 0.0,
        }

    def section(self, name: str) -> dict:
        found = self.config.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def _lacks_baseline(self) -> bool:
        """It was stopped after the model and before its opponent was done: `mirada resume` goes on."""
        return self.section("baseline").get("name", "none") != "none" and not self.folder.baseline.is_finished


def facts_of(folder: RunFolder) -> RunFacts:
    """What cannot be read is empty."""
    asked = _read_yaml(folder.asked / "settings.yaml")  # until the run has its own
    return RunFacts(
        folder, _read_yaml(folder.config) or asked, _read(folder.data), _read(folder.result), read_heartbeat(folder)
    )


def is_run(folder: RunFolder) -> bool:
    """Also one that the studio has just started, or that failed before it had a configuration."""
    return folder.config.is_file() or (folder.asked / "settings.yaml").is_file()


def score_of(result: dict) -> Score | None:
    value = finite(result.get("value"))
    if value is None or "metric" not in result:
        return None
    title = metric_title(str(result["metric"]))
    name = title[:1].lower() + title[1:] if title[1:].islower() else title  # accuracy, but BLEU
    return Score(name, value, finite(result.get("low")), finite(result.get("high")))


def metrics_of(folder: RunFolder) -> dict[str, list[float | None]]:
    """Columns of metrics.csv."""
    try:
        rows = folder.read_metrics()
    except (OSError, ValueError):
        return {}
    names = [name for name in (rows[0] if rows else ()) if isinstance(name, str)]
    return {name: [finite(row.get(name)) for row in rows] for name in names}


def last_lines(path: Path, count: int) -> list[str]:
    """Of a file that may be long, and may be written just now; none of one that is missing."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - TAIL))
            content = file.read(TAIL)
    except OSError:
        return []
    lines = content.decode("utf-8", errors="replace").splitlines()
    if size > TAIL:
        lines = lines[1:]  # of which only a part was read
    return [line[:LONGEST_LINE] for line in lines if line.strip()][-count:]


def finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _time_of(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _read(path: Path) -> dict:
    try:
        found = read_json(path)
    except MiradaError:
        return {}
    return found if isinstance(found, dict) else {}


def _read_yaml(path: Path) -> dict:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}
