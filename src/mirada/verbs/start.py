"""`--from`: a run that starts from trained weights, and what had to be adapted for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from torch import nn

from mirada.config.schema import Config, TrainConfig
from mirada.data.normalise import Normalisation
from mirada.errors import MiradaError
from mirada.systems.outline import outline
from mirada.systems.registry import all_arguments
from mirada.train.files import write_json
from mirada.train.folder import RunFolder
from mirada.verbs.maps.prepare import PreparedPlots
from mirada.verbs.prepare import AnyPrepared, Prepared
from mirada.verbs.prepare_graph import PreparedGraph
from mirada.verbs.text.prepared import PreparedText
from mirada.verbs.text.start import tokenised_as
from mirada.weights import Adapted, Checkpoint, load_adapted, read_checkpoint
from mirada.weights.adapt import adapted

SMALL_MODEL = 5_000_000  # parameters; what the presets train from scratch in minutes
RATE_OF_PRESET = 0.25
RATE_OF_SMALL = 1e-3
RATE_OF_LARGE = 1e-4
FEW_PATCHES = 16
LONG_TEXT = 128  # tokens at once: a checkpoint often knows more, which a laptop has no time for
ROWS_SHOWN = 12


def start_settings(checkpoint: Checkpoint, preset: TrainConfig) -> dict:
    """What a checkpoint decides of a configuration: the system, and steps that do not wash the weights out."""
    num_parameters = sum(tensor.numel() for tensor in checkpoint.state.values())
    rate = min(preset.learning_rate * RATE_OF_PRESET, RATE_OF_SMALL)
    if num_parameters > SMALL_MODEL:
        rate = min(preset.learning_rate, RATE_OF_LARGE)
    optimiser = "adamw" if preset.optimiser == "muon" else preset.optimiser  # as it was measured, and most were trained
    seen = checkpoint.all_arguments.get("max_length")
    text = {} if seen is None else {"text": {"max_length": min(seen, LONG_TEXT)}}
    return {"system": checkpoint.settings, "train": {"learning_rate": rate, "optimiser": optimiser}, **text}


def as_seen_by(checkpoint: Checkpoint, prepared: AnyPrepared) -> AnyPrepared:
    """The data as the checkpoint saw it: with its tokens, or its scale of pixels if it says so for as many channels."""
    if isinstance(prepared, PreparedText):
        return tokenised_as(checkpoint, prepared)
    statistics = checkpoint.normalisation
    if not isinstance(prepared, Prepared) or statistics is None:
        return prepared
    if len(statistics[0]) != prepared.store.shape.channels:
        return prepared
    return dataclasses.replace(prepared, normalisation=Normalisation(*statistics))


def require_startable(checkpoint: Checkpoint, config: Config, prepared: AnyPrepared) -> str:
    """Refuse a model that the checkpoint does not fit; returns a piece of advice, or nothing."""
    if config.system.name != checkpoint.system:
        raise MiradaError(
            f"{checkpoint.start}: holds a {checkpoint.system}, but system {config.system.name!r} is asked for; "
            f"leave --system out."
        )
    if isinstance(prepared, PreparedPlots):
        raise MiradaError(
            f"{prepared.source}: a model of plots keeps the plots it was trained on, so it starts from random weights; "
            "leave --from out."
        )
    arguments = model_arguments(config, prepared)
    model = outline(config.system.name, **arguments)
    adapted(model, arguments, checkpoint, class_names_of(prepared))
    patch_size = arguments.get("patch_size")
    if "image_size" in arguments and isinstance(patch_size, int):
        rows, columns = (-(-side // patch_size) for side in arguments["image_size"])
        if rows * columns < FEW_PATCHES:
            was = checkpoint.all_arguments["image_size"]
            return (
                f"Images of {arguments['image_size']} give only {rows} × {columns} patches of {patch_size}: "
                f"data.image_size={list(was)} is what the checkpoint was trained at, and "
                f"system.arguments.patch_size={max(1, patch_size // 4)} gives more patches."
            )
    return ""


def begin_from(
    model: nn.Module, config: Config, prepared: AnyPrepared, folder: RunFolder, says: Callable[[str], None]
) -> None:
    """Load the weights that the configuration names into a new model; start.json says what was adapted."""
    assert config.start is not None
    checkpoint = read_checkpoint(config.start)
    rows = load_adapted(model, model_arguments(config, prepared), checkpoint, class_names_of(prepared))
    start = describe(checkpoint, rows, sum(1 for _ in model.state_dict()))
    write_json(folder.start, start)
    says(text(start))


def model_arguments(config: Config, prepared: AnyPrepared) -> dict:
    given = {**config.system.arguments, **prepared.arguments()}
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    return all_arguments(config.system.name, config.system.size, **given)


def class_names_of(prepared: AnyPrepared) -> tuple[str, ...]:
    assert not isinstance(prepared, PreparedPlots)
    return tuple(prepared.graph.classes if isinstance(prepared, PreparedGraph) else prepared.table.class_names)


def describe(checkpoint: Checkpoint, rows: Iterable[Adapted], num_tensors: int) -> dict:
    """start.json"""
    told = [dataclasses.asdict(row) for row in rows]
    return {
        "start": checkpoint.start,
        "origin": checkpoint.origin,
        "system": checkpoint.system,
        "num_tensors": num_tensors,
        "num_copied": num_tensors - sum(row["wanted"] != "—" for row in told),
        "adapted": told,
    }


def text(start: dict) -> str:
    """The table of what was adapted, in lines."""
    rows = start["adapted"]
    head = (
        f"Starting from {start['start']} ({start['origin']}): {start['num_copied']} of {start['num_tensors']} tensors"
    )
    if not rows:
        return f"{head} are taken as they are."
    cells = [("adapted", "found", "wanted", "done"), *(tuple(row.values()) for row in rows[:ROWS_SHOWN])]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    more = [f"… and {len(rows) - ROWS_SHOWN} more, in start.json"] if len(rows) > ROWS_SHOWN else []
    return "\n  ".join([f"{head} are taken as they are, others adapted:", *lines, *more])
