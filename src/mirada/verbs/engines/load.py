"""`mirada.load`: a trained model, by torch or by an engine that is faster on a CPU and starts without torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.verbs.engines.exported import MODEL, Exported, open_exported, require_images
from mirada.verbs.engines.session import PACKAGES, require_names, require_package

if TYPE_CHECKING:
    from mirada.verbs.load import Trained


def load(
    run: str | Path | RunFolder,
    *,
    device: str = "auto",
    engine: str | None = None,
    precision: str | None = None,
) -> Trained | Exported:
    """The best model of a run folder, of its baseline/, or of a folder made by `mirada export`.

    engine:    torch, onnx (ONNX Runtime) or openvino; None: torch, or onnx for an exported folder with model.onnx.
    precision: float32, or int8 for onnx; None: float32, or that of the exported file.

    For a run the file of an engine is made on first use, in RUN/engines/, and only if it gives what torch gives. Of
    masks, what has the size that the model was trained at goes through the engine, and all else through torch.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    if not folder.path.is_dir():
        raise MiradaError(f"{folder.path}: there is no such folder; give a run made by `mirada train`.")
    is_exported = (folder.path / MODEL).exists() and not folder.config.exists()
    chosen = engine or ("onnx" if is_exported and device in ("auto", "cpu") and _can_run(folder) else "torch")
    require_names(chosen, precision or "float32")
    if chosen == "torch":
        from mirada.verbs.load import load as load_by_torch

        return load_by_torch(folder, device=device)
    require_package(chosen)
    if device not in ("auto", "cpu"):
        raise MiradaError(f"--engine {chosen} computes on the CPU; leave --device {device} out, or use --engine torch.")
    if is_exported:
        found = open_exported(folder, chosen)
        require_names(chosen, found.precision)
        if precision not in (None, found.precision):
            raise MiradaError(f"{found.path}: is a model in {found.precision}, not in {precision}; export it again.")
        return found
    data = folder.read_data()
    if data.get("inputs") == "masks":
        from mirada.verbs.masks.trained import by_engine

        return by_engine(folder, chosen, precision or "float32")
    require_images(folder, data, chosen)
    from mirada.verbs.engines.make import engine_folder

    return open_exported(folder, chosen, inside=engine_folder(folder, chosen, precision or "float32"))


def _can_run(folder: RunFolder) -> bool:
    """False: there is no ONNX Runtime here, but torch has a file of its own."""
    is_there = importlib.util.find_spec(PACKAGES["onnx"]) is not None
    return is_there or not (folder.path / "model.safetensors").exists()
