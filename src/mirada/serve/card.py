"""The card of a served model: what it is, what it was measured to do, and what may be asked of it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from mirada.serve.limits import Limits
from mirada.verbs.engines.exported import Exported
from mirada.verbs.load import Trained


def card_of(trained: Trained | Exported, limits: Limits, media_type: str) -> dict[str, Any]:
    data, folder = trained.data, trained.folder
    result = folder.read_result() if folder.result.exists() else {}
    return {
        "run": folder.path.resolve().name,
        **_model(trained),
        "task": data["task"],
        "inputs": data.get("inputs", "image"),
        "classes": [str(name) for name in data.get("class_names", data.get("target_names", ()))],
        "image_size": data.get("image_size"),
        "in_channels": data.get("in_channels"),
        "vocabulary": len(trained.tokeniser) if hasattr(trained, "tokeniser") else None,
        "needs": [*data.get("band_names", ()), *data.get("covariate_names", ())],
        "media_type": media_type,
        "result": {key: value for key, value in result.items() if _is_plain(value)},
        "limits": asdict(limits),
    }


def _model(trained: Trained | Exported) -> dict[str, Any]:
    if isinstance(trained, Exported):
        known = {"system": "", "size": None, "num_parameters": 0} | trained.data.get("model", {})
        return {**known, "device": "cpu", "engine": trained.engine, "precision": trained.precision}
    system = trained.config.system if trained.folder.config.exists() else None
    return {
        "system": system.name if system else type(trained.model).__name__,
        "size": getattr(system, "size", None),
        "num_parameters": sum(weights.numel() for weights in trained.model.parameters()),
        "device": str(trained.device),
        "engine": getattr(trained, "engine", "torch"),
        "precision": "float32",
    }


def _is_plain(value: Any) -> bool:
    """Tables of the result, per class say, are in its report."""
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
