"""Refuse what cannot work before anything is written or trained."""

from __future__ import annotations

import torch

from mirada import systems
from mirada.config.schema import BaselineConfig, Config, SystemConfig, TrainConfig
from mirada.errors import MiradaError
from mirada.machine.processes import started
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


# Their loss is of the whole batch, or their batch is the whole data: no mean over shares.
FOR_ONE_PROCESS = ("graph", "masks", "plots", "volume")


def require_shareable(config: Config, prepared: AnyPrepared) -> None:
    """Processes that train together can do so on this data."""
    if (count := started().count) == 1:
        return
    if prepared.inputs in FOR_ONE_PROCESS:
        words = WORDS[prepared.inputs]
        raise MiradaError(
            f"{prepared.source}: {words} are learned by one process, but torchrun started {count}; call it without."
        )
    if prepared.inputs == "image" and config.train.batch_size < count:  # batch norms would see an empty share
        raise MiradaError(
            f"train.batch_size is {config.train.batch_size} for all processes together, but torchrun started {count}; "
            "expected at least one image for each."
        )
    if config.distil.teacher is not None and config.train.class_weights:
        raise MiradaError(
            "distil.teacher with train.class_weights: their two means divide differently among processes; leave one "
            "out, or train without torchrun."
        )


def require_possible(config: Config, prepared: AnyPrepared) -> None:
    """The device, the model, the baseline and the tracker of this configuration exist and suit this data."""
    _require_float16(device_named(config.train.device), config.train)
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
    require_shareable(config, prepared)
    for key, part in parts.items():
        arguments = {name: tuple(v) if isinstance(v, list) else v for name, v in part.arguments.items()}
        try:
            outline(part.name, part.size, **arguments | prepared.arguments())
        except (TypeError, ValueError, ZeroDivisionError, RuntimeError) as error:  # such as dim: "wide"
            reason = " ".join(str(error).split())
            raise MiradaError(f"{key}.arguments {part.arguments}: {part.name} cannot be built ({reason}).") from error


def _require_float16(device: torch.device, train: TrainConfig) -> None:
    """Its gradients must be scaled, which a GPU does, where they are whole."""
    if train.precision != "float16" or (device.type == "cuda" and train.sharding == "none"):
        return
    where = "with train.sharding=full" if device.type == "cuda" else f"on the device {device.type}"
    raise MiradaError(f"train.precision=float16 does not work {where}; use bfloat16, float32 or auto.")
