"""The stages of a run: train and judge the model, then its baseline, then write the report. Done stages are skipped."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedDataParallelKwargs
from torch import nn

from mirada import systems
from mirada.config.load import dump_config, load_config, resolve
from mirada.config.schema import Config
from mirada.data.batches import Batches
from mirada.data.share import SharedBatches
from mirada.errors import MiradaError
from mirada.machine.processes import Lost, started, together
from mirada.report import build_report
from mirada.tasks.objective import measure_of
from mirada.train.checkpoint import describe_model, load_header, load_model
from mirada.train.files import write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.train.live import Live, told_live
from mirada.train.loop import Progress, Recipe, State, fit
from mirada.train.stopping import Stopped, StopRequest
from mirada.train.track import tracking
from mirada.verbs.logs import logging_to
from mirada.verbs.maps.prepare import PreparedPlots
from mirada.verbs.maps.validate import validate
from mirada.verbs.pace import Learner, step_seconds, with_precision
from mirada.verbs.prepare import AnyPrepared, device_named
from mirada.verbs.start import begin_from
from mirada.verbs.teacher import distillation


class Watcher:
    """What the caller hears of a run; every method may stay as it is."""

    def says(self, sentence: str) -> None: ...
    def loads(self, done: int, total: int) -> None: ...
    def resolved(self, config: Config, folder: RunFolder) -> None: ...
    def starts(self, what: str, steps: int) -> None: ...
    def advances(self, progress: Progress) -> None: ...
    def ends(self, what: str, result: dict) -> None: ...


def carry_out(
    folder: RunFolder, config: Config, prepared: AnyPrepared, watcher: Watcher, stop: StopRequest | None
) -> RunFolder:
    """The stages that are not done yet: the model, the baseline, the validation of a map, the report."""
    is_first = together().is_first
    logged = logging_to(folder.log) if is_first else nullcontext()
    with logged, stop or StopRequest() as request, told_live(folder) as live:
        try:
            _train_all(folder, config, prepared, watcher, request, live)
        except Stopped:  # perhaps of a part, which nobody should resume alone
            raise request.exception(folder.path) from None
        except Lost as error:
            raise MiradaError(_what_is_left(folder, error)) from error
        if is_first:
            build_report(folder.path)
    return folder


def _what_is_left(folder: RunFolder, error: Lost) -> str:
    part, word = (folder.baseline, "its baseline") if folder.is_finished else (folder, "it")
    step = load_header(part.state)["step"] if part.state.exists() else 0
    return (
        f"{folder.path}: one of the {started().count} processes that train it ended or cannot be reached "
        f"({error.reason}). Up to step {step} {word} is saved: `torchrun … -m mirada resume {folder.path}` goes on "
        "from there, with any number of processes."
    )


def _train_all(
    folder: RunFolder, config: Config, prepared: AnyPrepared, watcher: Watcher, stop: StopRequest, live: Live
) -> None:
    by_first = together().by_first
    if not by_first(lambda: folder.is_finished):
        _train_one(folder, config, prepared, watcher, stop, live, "model")
    if config.baseline.name != "none" and not by_first(lambda: folder.baseline.is_finished):
        baseline = by_first(lambda: _baseline_config(folder, config))
        _train_one(folder.baseline, baseline, prepared, watcher, stop, live, "baseline")
    if isinstance(prepared, PreparedPlots):
        _validate(folder, prepared, watcher, stop, live)


def _baseline_config(folder: RunFolder, config: Config) -> Config:
    """The opponent: the same data, augmentation and time, its own rate and, in the place of Muon, optimiser."""
    if folder.baseline.config.exists():
        return load_config(folder.baseline.config)
    result = folder.read_result()
    card = systems.card(config.baseline.name)
    system = {"name": config.baseline.name, "size": config.baseline.size, "arguments": config.baseline.arguments}
    train = config.train.model_dump() | {
        "epochs": None,
        "steps": None,
        "minutes": max(result["seconds_training"] / 60, 0.01),
        "learning_rate": config.baseline.learning_rate or card.learning_rate,
        "optimiser": card.optimiser if config.train.optimiser == "muon" else config.train.optimiser,
        "precision": config.baseline.precision or config.train.precision,
        "sharding": "none",  # it is small
    }
    layer = config.model_dump() | {"system": system, "train": train, "baseline": {"name": "none"}}
    return resolve(layer | {"start": None, "distil": {}})


def _validate(folder: RunFolder, prepared: PreparedPlots, watcher: Watcher, stop: StopRequest, live: Live) -> None:
    """Every fold is trained as the model was: by the same recipe, for as many steps."""
    config = load_config(folder.config)

    def train_fold(part: RunFolder, fold: PreparedPlots) -> None:
        if not part.is_finished:
            _train_one(part, config, fold, OnlyProgress(watcher), stop, live, "fold")

    validate(folder, config, prepared, train_fold, watcher.says)


class OnlyProgress(Watcher):
    """Of the folds of a validation only the progress is shown."""

    def __init__(self, watcher: Watcher) -> None:
        self.starts, self.advances = watcher.starts, watcher.advances  # type: ignore[method-assign]


def _train_one(
    folder: RunFolder,
    config: Config,
    prepared: AnyPrepared,
    watcher: Watcher,
    stop: StopRequest,
    live: Live,
    what: str,
) -> None:
    live.begins(what)
    processes = together()
    device = device_named(config.train.device)
    PartialState(cpu=device.type == "cpu")  # decides about threads, before steps are timed
    torch.manual_seed(config.train.seed)
    arguments = {**config.system.arguments, **prepared.arguments()}
    created = new_model(config, prepared)
    if config.start is not None and processes.is_first and not folder.state.exists():  # else it has its own weights
        begin_from(created, config, prepared, folder, watcher.says)
    model = prepared.attached(created, device)
    task = prepared.task(config)
    objective = distillation(config, prepared, task, created, device) or prepared.objective(task)
    batches: Batches = prepared.training(config)
    if processes.count > 1:
        batches = SharedBatches(batches, processes, measure_of(task))
    # All measure at the same time, as they will train, and go by the first one.
    learner = Learner(model, task, batches, device, objective)
    config = processes.as_first(with_precision(config, learner, watcher.says))
    if config.train.minutes is not None:
        seconds = processes.as_first(step_seconds(config, learner))
        steps = max(1, round(config.train.minutes * 60 / seconds))
        train = config.train.model_copy(update={"minutes": None, "steps": steps})
        taken = ", as long as the model was trained," if what == "baseline" else ""
        watcher.says(f"{config.train.minutes:.2g} minutes{taken} are {steps} steps of {seconds * 1e3:.0f} ms.")
        config = config.model_copy(update={"train": train})
    if processes.is_first:
        write_text(folder.config, dump_config(config))
    watcher.resolved(config, folder)
    recipe = _recipe(config, len(batches))
    num_parameters = sum(p.numel() for p in model.parameters())
    if processes.is_first:
        describe_model(folder.best / "model.json", config.system.name, config.system.size, arguments, num_parameters)
    watcher.starts(f"{config.system.name} ({num_parameters:,} parameters)", recipe.steps)

    def evaluate(candidate: nn.Module) -> dict[str, float]:
        return prepared.watched(candidate, task, device)

    # Gradients stay where they arrive: no copy back in every step.
    sending = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
    precision = _mixed(config.train.precision)
    AcceleratorState._reset_state()  # or else all trainings of a process must have the precision of the first
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=precision, kwargs_handlers=[sending])
    if config.train.compile:
        model.compile()
    track = config.track
    is_tracked = track.mlflow and processes.is_first
    with tracking(is_tracked, folder, config.model_dump(mode="json"), track.experiment, track.mlflow_uri) as tracker:

        def watch(progress: Progress) -> None:
            watcher.advances(progress)
            live.advances(progress)
            tracker.advances(progress)

        state = fit(
            model,
            task,
            batches,
            evaluate,
            recipe,
            folder,
            objective=objective,
            accelerator=accelerator,
            stop=stop,
            watch=watch,
        )

        def conclude() -> dict:
            best = prepared.attached(load_model(folder.best).to(device), device)
            judged, predictions = prepared.judged(folder, best, task, device)
            write_text(folder.predictions, csv_text(predictions))
            result = judged | _facts(config, state, num_parameters)
            tracker.ends(result)
            return result

        result = processes.by_first(conclude, lambda: stop.is_requested)
    if processes.is_first:
        folder.write_result(result)
    watcher.ends(what, result)


def new_model(config: Config, prepared: AnyPrepared) -> nn.Module:
    """The configured system, with what the data decides of it."""
    arguments = {**config.system.arguments, **prepared.arguments()}
    return systems.create(config.system.name, config.system.size, **_as_tuples(arguments))


def _facts(config: Config, state: State, num_parameters: int) -> dict:
    return {
        "system": config.system.name,
        "size": config.system.size,
        "teacher": config.distil.teacher,
        "num_parameters": num_parameters,
        "seconds_training": round(state.seconds, 3),
        "samples_seen": state.samples,
        "best_step": state.best_step,
        "best_is_mean": state.best_is_mean,
        "steps": state.step,
    }


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
