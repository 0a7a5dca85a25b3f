"""The card of a served model: what it is, what it was measured to do, and what may be asked of it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from mirada.serve.limits import Limits
from mirada.verbs.load import Trained


def card_of(trained: Trained, limits: Limits, media_type: str) -> dict[str, Any]:
    data, folder = trained.data, trained.folder
    system = trained.config.system if folder.config.exists() else None
    result = folder.read_result() if folder.result.exists() else {}
    return {
        "run": folder.path.resolve().name,
        "system": system.name if system else type(trained.model).__name__,
        "size": getattr(system, "size", None),
        "task": data["task"],
        "inputs": data.get("inputs", "image"),
        "num_parameters": sum(weights.numel() for weights in trained.model.parameters()),
        "classes": [str(name) for name in data.get("class_names", data.get("target_names", ()))],
        "image_size": data.get("image_size"),
        "in_channels": data.get("in_channels"),
        "vocabulary": len(trained.tokeniser) if hasattr(trained, "tokeniser") else None,
        "needs": [*data.get("band_names", ()), *data.get("covariate_names", ())],
        "media_type": media_type,
        "device": str(trained.device),
        "result": {key: value for key, value in result.items() if _is_plain(value)},
        "limits": asdict(limits),
    }


def _is_plain(value: Any) -> bool:
    """Tables of the result, per class say, are in its report."""
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
