"""The run folder: what everything passes around (see docs: run folders)."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import read_json, write_json, write_text


@dataclass(frozen=True)
class RunFolder:
    """Names of the files of a run. Nothing here is read or written until asked for."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def data(self) -> Path:
        return self.path / "data.json"

    @property
    def start(self) -> Path:
        """Which weights the run started from, and what was adapted; missing where they were random."""
        return self.path / "start.json"

    @property
    def tokeniser(self) -> Path:
        """Of a run on text: how text becomes tokens; of a translation, the source's where each side has its own."""
        return self.path / "tokeniser.json"

    @property
    def target_tokeniser(self) -> Path:
        return self.path / "target_tokeniser.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def progress(self) -> Path:
        """How far a training is that runs now, see mirada.train.live."""
        return self.path / "progress.json"

    @property
    def asked(self) -> Path:
        """Of a run that the studio started: what was asked for, and what its process printed."""
        return self.path / "studio"

    @property
    def best(self) -> Path:
        return self.path / "best"

    @property
    def last(self) -> Path:
        return self.path / "last"

    @property
    def state(self) -> Path:
        return self.last / "state.safetensors"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.csv"

    @property
    def validation(self) -> Path:
        """Of a run on plots: how it and simple models do by several ways to hold out plots."""
        return self.path / "validation.json"

    @property
    def applicability(self) -> Path:
        """Of a run on plots: how unlike its training plots a place is."""
        return self.path / "applicability.safetensors"

    @property
    def masks(self) -> Path:
        """Of a run on masks: what was predicted of the held-out images, beside their own masks."""
        return self.path / "masks.npz"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def engines(self) -> Path:
        """The model for other engines than torch, a folder each, made when first asked for."""
        return self.path / "engines"

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def baseline(self) -> RunFolder:
        return RunFolder(self.path / "baseline")

    @property
    def is_finished(self) -> bool:
        return self.result.exists()

    def read_data(self) -> dict:
        """A baseline was trained on the data of its parent."""
        return read_json(self.data if self.data.exists() else self.path.parent / self.data.name)

    def read_result(self) -> dict:
        return read_json(self.result)

    def write_result(self, result: dict) -> None:
        write_json(self.result, result)

    def read_metrics(self) -> list[dict[str, str]]:
        if not self.metrics.exists():
            return []
        with open(self.metrics, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def write_metrics(self, rows: list[dict]) -> None:
        """All evaluations so far; small enough to write whole, so the file is never half a row."""
        write_text(self.metrics, csv_text(rows))


def csv_text(rows: list[dict]) -> str:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def open_run(path: str | Path) -> RunFolder:
    """An existing run."""
    folder = RunFolder(Path(path))
    if not folder.config.exists():
        raise MiradaError(
            f"{path}: is not the folder of a run (it has no config.yaml); give one made by `mirada train`."
        )
    return folder


def model_folder(folder: RunFolder) -> Path:
    """Where model.safetensors is."""
    for place in (folder.best, folder.path):
        if (place / "model.safetensors").exists():
            return place
    if folder.config.exists():
        raise MiradaError(f"{folder.path}: has no trained model yet; go on with `mirada resume {folder.path}`.")
    if (folder.path / "model.onnx").exists():
        raise MiradaError(
            f"{folder.path}: holds an ONNX model only, which predicts and nothing else; give the run it was made of."
        )
    raise MiradaError(f"{folder.path}: is not the folder of a run or of an exported model; give one of these.")


def new_run(runs: Path, name: str) -> RunFolder:
    """A folder that does not exist yet: runs/name, else runs/name-2, …"""
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    number, path = 1, runs / stem
    try:
        while path.exists():
            number += 1
            path = runs / f"{stem}-{number}"
        path.mkdir(parents=True)
    except OSError as error:
        raise MiradaError(f"{path}: cannot be made ({error.strerror}); give another folder with --out.") from error
    return RunFolder(path)
