"""`mirada train` and `mirada resume`: from data to a trained, judged and reported model in a run folder."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterable
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn

from mirada import systems
from mirada.config.load import dump_config, load_config, parse_settings, read_preset, read_yaml, resolve
from mirada.config.preset_choice import choose_preset
from mirada.config.schema import Config
from mirada.data.batches import TrainBatches, evaluation_batches
from mirada.errors import MiradaError
from mirada.train.budget import seconds_per_step
from mirada.train.checkpoint import describe_model, load_model
from mirada.train.files import write_json, write_text
from mirada.train.folder import RunFolder, csv_text, new_run, open_run
from mirada.train.loop import Progress, Recipe, fit
from mirada.train.outputs import outputs_of
from mirada.train.stopping import StopRequest
from mirada.verbs.logs import logging_to
from mirada.verbs.prepare import Prepared, augmentation_for, device_named, open_table, prepare

log = logging.getLogger(__name__)

EVALUATION_BATCH = 256


class Watcher:
    """What the caller hears of a run; every method may stay as it is."""

    def says(self, sentence: str) -> None: ...
    def loads(self, done: int, total: int) -> None: ...
    def starts(self, what: str, steps: int) -> None: ...
    def advances(self, progress: Progress) -> None: ...
    def ends(self, what: str, result: dict) -> None: ...


def train(
    source: str | Path,
    *,
    system: str | None = None,
    preset: str | None = None,
    config: str | Path | None = None,
    settings: Iterable[str] = (),
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    stop: StopRequest | None = None,
) -> RunFolder:
    """Train on `source`; what is not given is chosen from the data. Returns the run folder.

    Order: preset, then the `config` file, then `settings` such as "train.epochs=10". `out` is the run folder itself.
    """
    watcher = watcher or Watcher()
    given = resolve_given(source, system, config, settings)
    first = resolve(given)
    table = open_table(first.data)
    prepared = prepare(first.data, table, progress=watcher.loads)
    if preset is None and "preset" not in given:
        preset, why = choose_preset(len(prepared.split.train), prepared.store.shape.size)
        watcher.says(f"Preset {preset}: {why}.")
    layers = [read_preset(preset or given["preset"]), given]
    resolved = resolve(*layers, {"data": {"image_size": list(prepared.store.shape.size)}})
    resolved = _with_length(resolved, given)
    folder = _make_folder(resolved, Path(source), out)
    write_json(folder.data, prepared.describe())
    return _carry_out(folder, resolved, prepared, watcher, stop)


def resume(run: str | Path, *, watcher: Watcher | None = None, stop: StopRequest | None = None) -> RunFolder:
    """Continue a run where it was stopped; a finished run is left as it is."""
    watcher = watcher or Watcher()
    folder = open_run(run)
    config = load_config(folder.config)
    prepared = prepare(config.data, open_table(config.data), saved=folder.read_data(), progress=watcher.loads)
    return _carry_out(folder, config, prepared, watcher, stop)


def resolve_given(source: str | Path, system: str | None, config: str | Path | None, settings: Iterable[str]) -> dict:
    """What the caller said, as one layer: file, then settings, then the arguments."""
    from mirada.config.load import merge

    layers = [{} if config is None else read_yaml(config), parse_settings(settings), {"data": {"source": str(source)}}]
    if system is not None:
        name, _, size = system.partition(":")
        layers.append({"system": {"name": name, **({"size": size} if size else {})}})
    return merge(*layers)


def _with_length(config: Config, given: dict) -> Config:
    if config.train.epochs is None and config.train.steps is None and config.train.minutes is None:
        return config.model_copy(update={"train": config.train.model_copy(update={"minutes": 5.0})})
    return config


def _make_folder(config: Config, source: Path, out: str | Path | None) -> RunFolder:
    if out is None:
        return new_run(
            Path(config.runs), config.name or f"{config.system.name}-{source.name.removesuffix(source.suffix)}"
        )
    if Path(out).exists() and any(Path(out).iterdir()):
        raise MiradaError(f"{out}: already exists and is not empty; give another folder, or `mirada resume {out}`.")
    return new_run(Path(out).parent, Path(out).name) if not Path(out).exists() else RunFolder(Path(out))


def _carry_out(
    folder: RunFolder, config: Config, prepared: Prepared, watcher: Watcher, stop: StopRequest | None
) -> RunFolder:
    """The stages that are not done yet: the model, the baseline, the report."""
    with logging_to(folder.log), stop or StopRequest() as request:
        if not folder.is_finished:
            _train_one(folder, config, prepared, watcher, request, "model")
        if config.baseline.name != "none" and not folder.baseline.is_finished:
            baseline = _baseline_config(folder, config)
            _train_one(folder.baseline, baseline, prepared, watcher, request, "baseline")
        from mirada.report import build_report

        build_report(folder.path)
    return folder


def _baseline_config(folder: RunFolder, config: Config) -> Config:
    """The opponent: the same data, augmentation and time, its own rate."""
    if folder.baseline.config.exists():
        return load_config(folder.baseline.config)
    result = folder.read_result()
    system = {"name": config.baseline.name, "size": config.baseline.size, "arguments": config.baseline.arguments}
    train = config.train.model_dump() | {
        "epochs": None,
        "steps": None,
        "minutes": max(result["seconds_training"] / 60, 0.01),
        "learning_rate": config.baseline.learning_rate,
    }
    layer = config.model_dump() | {"system": system, "train": train, "baseline": {"name": "none"}}
    return resolve(layer)


def _train_one(
    folder: RunFolder, config: Config, prepared: Prepared, watcher: Watcher, stop: StopRequest, what: str
) -> None:
    device = device_named(config.train.device)
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=_mixed(config.train.precision))
    torch.manual_seed(config.train.seed)
    shape, table = prepared.store.shape, prepared.table
    arguments = {
        **config.system.arguments,
        "image_size": tuple(shape.size),
        "in_channels": shape.channels,
        "num_classes": table.num_outputs,
    }
    model = systems.create(config.system.name, config.system.size, **_as_tuples(arguments))
    task = prepared.task(config)
    batches = TrainBatches(
        prepared.store,
        prepared.split.train,
        batch_size=min(config.train.batch_size, len(prepared.split.train)),
        normalisation=prepared.normalisation,
        augmentation=augmentation_for(config.augment, prepared),
        seed=config.train.seed,
        balanced=config.train.balanced,
        shard=(accelerator.process_index, accelerator.num_processes),
    )
    if config.train.minutes is not None:
        seconds = seconds_per_step(model, task, batches, device, config.train.accumulate)
        steps = max(1, round(config.train.minutes * 60 / seconds))
        train = config.train.model_copy(update={"minutes": None, "steps": steps})
        watcher.says(f"{config.train.minutes:.2g} minutes are {steps} steps of {seconds * 1e3:.0f} ms.")
        config = config.model_copy(update={"train": train})
    write_text(folder.config, dump_config(config))
    recipe = _recipe(config, len(batches))
    num_parameters = sum(p.numel() for p in model.parameters())
    describe_model(folder.best / "model.json", config.system.name, config.system.size, arguments, num_parameters)
    watcher.starts(f"{config.system.name} ({num_parameters:,} parameters)", recipe.steps)

    def evaluate(candidate: nn.Module) -> dict[str, float]:
        outputs, targets, _ = _held_out_outputs(candidate, prepared, "val", device)
        return task.quick(outputs, targets)

    model = torch.compile(model) if config.train.compile else model  # type: ignore[assignment]
    state = fit(
        model, task, batches, evaluate, recipe, folder, accelerator=accelerator, stop=stop, watch=watcher.advances
    )
    result = _judge(folder, prepared, task, device)
    result |= {
        "system": config.system.name,
        "size": config.system.size,
        "num_parameters": num_parameters,
        "seconds_training": round(state.seconds, 3),
        "images_seen": state.images,
        "best_step": state.best_step,
        "steps": state.step,
    }
    folder.write_result(result)
    watcher.ends(what, result)


def _judge(folder: RunFolder, prepared: Prepared, task, device: torch.device) -> dict:
    """Predictions of the best weights on the held-out images, and what they are worth."""
    model = load_model(folder.best).to(device)
    started = time.monotonic()
    outputs, targets, rows = _held_out_outputs(model, prepared, prepared.held_out, device)
    seconds = time.monotonic() - started
    lines = [
        {"name": prepared.table.name(row), "row": row, **target, **answer}
        for row, target, answer in zip(rows.tolist(), task.named(targets), task.answers(outputs), strict=True)
    ]
    write_text(folder.predictions, csv_text(lines))
    result = task.result(outputs, targets)
    return {"split": prepared.held_out, "task": prepared.table.task, "seconds_per_image": seconds / len(rows), **result}


def _held_out_outputs(model: nn.Module, prepared: Prepared, side: str, device: torch.device):
    rows = prepared.split.rows(side)
    batches = evaluation_batches(
        prepared.store, rows, batch_size=EVALUATION_BATCH, normalisation=prepared.normalisation
    )
    return outputs_of(model, batches, device)


def _recipe(config: Config, batches_per_epoch: int) -> Recipe:
    train = config.train
    per_epoch = max(1, batches_per_epoch // train.accumulate)
    steps = train.steps if train.steps is not None else max(1, round((train.epochs or 1) * per_epoch))
    names = {field.name for field in dataclasses.fields(Recipe)}
    common = {name: value for name, value in train if name in names}
    return Recipe(
        **common
        | {
            "steps": steps,
            "evaluate_every": max(1, steps // train.evaluations),
            "warmup": round(train.warmup * steps),
        }
    )


def _mixed(precision: str) -> str:
    return {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[precision]


def _as_tuples(arguments: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
