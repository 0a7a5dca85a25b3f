"""The files of a run for other engines: made once, checked, and again when the weights changed."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import read_json, write_json
from mirada.train.folder import RunFolder, model_folder
from mirada.verbs.engines.exported import MODEL

log = logging.getLogger(__name__)


def engine_folder(run: RunFolder, engine: str, precision: str) -> Path:
    """RUN/engines/onnx-<precision>, which ONNX Runtime and OpenVINO both read. Torch is loaded only if it is made."""
    weights = _checksum(model_folder(run) / "model.safetensors")
    folder = RunFolder(run.engines / f"onnx-{precision}")
    data = _known(folder, weights)
    if data is None:
        log.info("making %s", folder.path)
        _make(run, folder, precision, weights)
        data = read_json(folder.data)
    if engine not in data["onnx"]["difference"]:
        _compare(run, folder, data, engine)
    return folder.path


def _known(folder: RunFolder, weights: str) -> dict | None:
    """The data.json of files that belong to these weights."""
    if not (folder.data.exists() and (folder.path / MODEL).exists()):
        return None
    try:
        data = read_json(folder.data)
    except MiradaError:
        return None
    return data if data.get("weights") == weights else None


def _make(run: RunFolder, folder: RunFolder, precision: str, weights: str) -> None:
    from mirada.verbs.export import described
    from mirada.verbs.export_onnx import write_onnx
    from mirada.verbs.load import load

    trained = load(run, device="cpu")
    # Without the old one, files of which writing was interrupted are taken for what they are.
    folder.data.unlink(missing_ok=True)
    write_onnx(trained, {**described(trained), "weights": weights}, folder.path, precision)


def _compare(run: RunFolder, folder: RunFolder, data: dict, engine: str) -> None:
    """The first time that another engine reads the file."""
    from mirada.verbs.export_onnx import compare
    from mirada.verbs.load import load

    found = compare(load(run, device="cpu"), folder.path / MODEL, engine)
    onnx = data["onnx"]
    write_json(folder.data, {**data, "onnx": {**onnx, "difference": {**onnx["difference"], engine: found}}})


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
