"""What a run folder holds, read once; pieces that are missing are None or empty, and the report says so."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import yaml

from mirada.errors import MiradaError
from mirada.report.wording import SAMPLE_OF_TASK, noun
from mirada.train.files import read_json
from mirada.train.folder import RunFolder, open_run

# What data.json must have, beginning with how many there are on each side.
KEYS_OF_IMAGES = ("num_images", "image_size")
OWN_KEYS = {
    "graph": ("num_nodes", "graph"),
    "plots": ("num_plots", "target_name", "crs", "block", "covariate_names", "band_names", "chip_size", "split"),
    "text": ("num_texts", "tokeniser", "num_tokens", "max_length"),
    "pairs": ("num_texts", "tokeniser", "num_tokens", "max_length", "sides"),
}


@dataclass(frozen=True)
class Contents:
    """The files of a run. `baseline` is the opponent's, of the same form."""

    folder: RunFolder
    config: dict
    data: dict
    metrics: list[dict[str, float]]
    result: dict | None
    predictions: list[dict[str, str]]
    model: dict | None
    start: dict | None
    baseline: Contents | None

    @property
    def task(self) -> str:
        return self.data["task"]

    @property
    def inputs(self) -> str:
        return self.data.get("inputs", "image")

    @property
    def noun(self) -> str:
        """What is counted: images, nodes of a graph, plots, texts."""
        return noun(self.inputs, self.task)

    @property
    def nouns(self) -> str:
        return f"{self.noun}s"

    @property
    def samples(self) -> str:
        """What training steps take some of: the images, or passages of running text."""
        return f"{SAMPLE_OF_TASK.get(self.task, self.noun)}s"

    @property
    def counts(self) -> dict[str, int]:
        """How many there are on each side of the split."""
        return self.data[OWN_KEYS.get(self.inputs, KEYS_OF_IMAGES)[0]]

    @property
    def is_text(self) -> bool:
        return self.inputs in ("text", "pairs")

    @property
    def system(self) -> str:
        return str(self.section("system").get("name") or "model")

    @property
    def title(self) -> str:
        return f"{self.system} on {Path(str(self.data['source'])).name or self.data['source']}"

    @property
    def held_out(self) -> str:
        """The side the result was measured on."""
        return (self.result or {}).get("split") or self.data.get("held_out") or "test"

    def section(self, name: str) -> dict:
        section = self.config.get(name)
        return section if isinstance(section, dict) else {}


def read_contents(path: str | Path) -> Contents:
    """The run at `path` with its baseline, if it has one."""
    folder = open_run(path)
    data = read_json(folder.data)
    for key in ("source", "task", *OWN_KEYS.get(data.get("inputs", "image"), KEYS_OF_IMAGES)):
        if key not in data:
            raise MiradaError(f"{folder.data}: has no {key!r}; restore the file or train again.")
    has_baseline = folder.baseline.config.exists()
    return _read(folder, data, _read(folder.baseline, data, None) if has_baseline else None)


def _read(folder: RunFolder, data: dict, baseline: Contents | None) -> Contents:
    description = folder.best / "model.json"
    return Contents(
        folder=folder,
        config=_read_yaml(folder.config),
        data=data,
        metrics=[{key: _number(value) for key, value in row.items()} for row in folder.read_metrics()],
        result=folder.read_result() if folder.is_finished else None,
        predictions=read_rows(folder.predictions),
        model=read_json(description) if description.exists() else None,
        start=read_json(folder.start) if folder.start.exists() else None,
        baseline=baseline,
    )


def _read_yaml(path: Path) -> dict:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise MiradaError(f"{path}: cannot be read as YAML ({reason}); restore it or train again.") from error
    if not isinstance(content, dict):
        raise MiradaError(f"{path}: holds no settings; restore it or train again.")
    return content


def read_rows(path: Path) -> list[dict[str, str]]:
    """Of a CSV file; none where it is missing."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
