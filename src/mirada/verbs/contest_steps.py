"""What the budget of a comparison is in steps of each entrant, and what its model costs: measured once and kept."""

from __future__ import annotations

import torch

from mirada.compare.contest import Contest, Entrant
from mirada.config.schema import Config, DataConfig, SystemConfig
from mirada.core import count_flops, formula_flops
from mirada.errors import MiradaError
from mirada.systems import card
from mirada.verbs.pace import Learner, step_seconds, with_precision
from mirada.verbs.prepare import AnyPrepared, LoadProgress, device_named, prepare_data
from mirada.verbs.stages import Watcher, new_model
from mirada.verbs.teacher import distillation
from mirada.verbs.train import plan, what_was_said

ROUNDS = 3  # over all entrants, so that all are timed in the same weather
Planned = dict[str, tuple[Config, AnyPrepared]]


def measure_steps(contest: Contest, watcher: Watcher) -> dict[str, dict]:
    """Of every entrant: how many steps its budget is, how long one takes, and what one forward pass costs."""
    asked, found = plan_all(contest), dict[str, dict]()
    planned = {label: (_decided(config, prepared, watcher), prepared) for label, (config, prepared) in asked.items()}
    for label, (config, prepared) in planned.items():
        found[label] = {"steps": config.train.steps, **_flops(config, prepared)}
        if config is not asked[label][0]:
            found[label]["settings"] = [
                f"train.precision={config.train.precision}",
                f"train.fused={config.train.fused}",
            ]
    if contest.minutes is None:
        return found
    for label, rounds in _rounds(planned).items():
        config, seconds = planned[label][0], min(rounds)  # the calmest: what others use of the machine only adds
        found[label] |= {
            "steps": max(1, round(60 * contest.minutes / seconds)),
            "seconds_per_step": seconds,
            "rounds": [round(taken, 5) for taken in rounds],
            "samples_per_second": _samples_per_step(config, planned[label][1]) / seconds,
            "threads": torch.get_num_threads(),
        }
        watcher.says(f"{label}: {contest.minutes:g} minutes are {found[label]['steps']:,} steps.")
    return found


def plan_all(contest: Contest) -> Planned:
    """The configuration and the data of every entrant; entrants that read the same data share it."""
    shared = SharedData()
    planned: Planned = {}
    for entrant in contest.parsed():
        given = what_was_said(contest.source, entrant.system, None, settings_of(contest, entrant))
        planned[entrant.label] = plan(given, contest.preset, Watcher(), shared)
    _require_one_task(planned)
    return planned


def settings_of(contest: Contest, entrant: Entrant) -> list[str]:
    return [*contest.settings, *entrant.settings, "baseline.name=none"]


class SharedData:
    """`prepare_data`, but what was read once is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, AnyPrepared] = {}

    def __call__(
        self,
        data: DataConfig,
        system: SystemConfig,
        *,
        saved: dict | None = None,
        progress: LoadProgress | None = None,
    ) -> AnyPrepared:
        inputs = card(system.name).inputs
        # The palette of a model of pixels is learned with the data, in as many colours as the model has.
        key = f"{data!r} {inputs} {system if inputs == 'pixels' else ''}"
        if key not in self._known:
            self._known[key] = prepare_data(data, system, saved=saved, progress=progress)
        return self._known[key]


def _require_one_task(planned: Planned) -> None:
    (first, (_, of_first)), *others = planned.items()
    for label, (_, prepared) in others:
        if prepared.task_name != of_first.task_name:
            raise MiradaError(
                f"{label!r} learns another task than {first!r} ({prepared.task_name}, not {of_first.task_name}), so "
                "their scores cannot be compared; compare it with systems that learn the same."
            )


def _rounds(planned: Planned) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {label: [] for label in planned}
    for _ in range(ROUNDS):
        for label, (config, prepared) in planned.items():
            times[label].append(step_seconds(config, _learner(config, prepared)))
    return times


def _decided(config: Config, prepared: AnyPrepared, watcher: Watcher) -> Config:
    """The precision of `auto`, here for all seeds: trainings that share the cores could not tell."""
    if config.train.precision != "auto":
        return config
    return with_precision(config, _learner(config, prepared), watcher.says)


def _learner(config: Config, prepared: AnyPrepared) -> Learner:
    device = device_named(config.train.device)
    torch.manual_seed(0)
    model, task = new_model(config, prepared), prepared.task(config)
    objective = distillation(config, prepared, task, model, device) or prepared.objective(task)
    return Learner(prepared.attached(model, device), task, prepared.training(config), device, objective)


def _samples_per_step(config: Config, prepared: AnyPrepared) -> int:
    return len(prepared.training(config).batch(0, 0).inputs) * config.train.accumulate


def _flops(config: Config, prepared: AnyPrepared) -> dict[str, int | None]:
    """Of one image, by the counter and by formula; graphs and texts have no such unit."""
    arguments = prepared.arguments()
    if "image_size" not in arguments:
        return {"flops": None, "formula_flops": None}
    torch.manual_seed(0)
    image = torch.zeros(1, arguments["in_channels"], *arguments["image_size"])
    model = prepared.attached(new_model(config, prepared), torch.device("cpu"))
    return {"flops": count_flops(model, image), "formula_flops": formula_flops(model, image)}
