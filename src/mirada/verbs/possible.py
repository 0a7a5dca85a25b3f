"""Refuse what cannot work before anything is written or trained."""

from __future__ import annotations

from mirada import systems
from mirada.config.schema import BaselineConfig, Config, SystemConfig
from mirada.errors import MiradaError
from mirada.systems.outline import outline
from mirada.train.track import require_mlflow
from mirada.verbs.prepare import AnyPrepared, device_named

WORDS = {
    "image": "images",
    "graph": "a graph",
    "pixels": "images as pixels",
    "volume": "volumes",
    "masks": "images with masks",
    "plots": "plots on a map",
    "text": "text",
    "pairs": "pairs of sentences",
}


def require_possible(config: Config, prepared: AnyPrepared) -> None:
    """The device, the model, the baseline and the tracker of this configuration exist and suit this data."""
    device_named(config.train.device)
    if config.track.mlflow:
        require_mlflow()
    parts: dict[str, SystemConfig | BaselineConfig] = {"system": config.system}
    if config.baseline.name != "none":
        parts["baseline"] = config.baseline
    for key, part in parts.items():
        card = systems.card(part.name)
        if card.inputs != prepared.inputs:
            takes, holds = (WORDS.get(inputs, inputs) for inputs in (card.inputs, prepared.inputs))
            raise MiradaError(f"{key} {part.name!r} takes {takes}, but {prepared.source} holds {holds}.")
    prepared.require_suitable(config)
    for key, part in parts.items():
        arguments = {name: tuple(v) if isinstance(v, list) else v for name, v in part.arguments.items()}
        try:
            outline(part.name, part.size, **arguments | prepared.arguments())
        except (TypeError, ValueError, ZeroDivisionError, RuntimeError) as error:  # such as dim: "wide"
            reason = " ".join(str(error).split())
            raise MiradaError(f"{key}.arguments {part.arguments}: {part.name} cannot be built ({reason}).") from error
