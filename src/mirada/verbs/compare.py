"""`mirada compare`: any systems and settings on the same split with the same budget, several seeds each.

Every training is a run folder of its own below the folder of the comparison. What is finished is never done again, so
the same call continues a comparison that was stopped.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from mirada.compare.contest import Contest, ContestFolder, Entrant, require_contest
from mirada.compare.outcome import Row, cells, figure, markdown, numbers, outcome
from mirada.config.load import LENGTHS, parse_settings
from mirada.config.schema import Config
from mirada.core import count_flops
from mirada.errors import MiradaError
from mirada.train.budget import seconds_per_step
from mirada.train.files import read_json, write_atomically, write_json, write_text
from mirada.train.folder import csv_text, new_run
from mirada.train.stopping import Stopped, StopRequest
from mirada.verbs.prepare import AnyPrepared, device_named
from mirada.verbs.stages import Watcher, new_model
from mirada.verbs.teacher import distillation
from mirada.verbs.train import DEFAULT_MINUTES, plan, resume, train, what_was_said

ROUNDS = 3  # over all entrants, so that all are timed in the same weather


@dataclass(frozen=True)
class Comparison:
    """The folder, and a row for every entrant that is through."""

    folder: Path
    rows: list[Row]

    @property
    def table(self) -> str:
        """Markdown."""
        return markdown(cells(self.rows))


def compare(
    entrants: Iterable[str] = (),
    data: str | Path | None = None,
    *,
    seeds: int = 3,
    minutes: float | None = None,
    settings: Iterable[str] = (),
    preset: str | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    stop: StopRequest | None = None,
) -> Comparison:
    """Train every entrant ("vit", "cnn:mini", "vit:micro system.arguments.stem=linear") with every seed.

    `minutes` become steps once, before the first training, for every entrant by its own speed. `settings` hold for all.
    Without entrants, `out` is the folder of an earlier comparison, which is continued.
    """
    watcher = watcher or Watcher()
    contest = _asked(list(entrants), data, seeds, minutes, tuple(settings), preset, out)
    folder = _opened(contest, out, watcher)
    steps = read_json(folder.steps)
    rows: list[Row] = []
    for seed in range(contest.seeds):
        for entrant in contest.parsed():
            if not folder.run(entrant, seed).is_finished:
                watcher.says(f"{entrant.label}, seed {seed}")
                try:
                    _train(folder, contest, entrant, seed, steps[entrant.label]["steps"], watcher, stop)
                except Stopped as stopped:
                    words = f"Stopped. Nothing is lost: `mirada compare --out {folder.path}` goes on from here."
                    raise Stopped(words, stopped.exit_code) from None
                rows = _write(folder, contest, steps)
    return Comparison(folder.path, rows or _write(folder, contest, steps))


def _asked(
    entrants: list[str],
    data: str | Path | None,
    seeds: int,
    minutes: float | None,
    settings: tuple[str, ...],
    preset: str | None,
    out: str | Path | None,
) -> Contest:
    """The comparison that was described, or else the one that is in `out`."""
    if not entrants:
        if out is None or not ContestFolder(Path(out)).definition.exists():
            raise MiradaError("nothing to compare: name two systems or more, or with --out an earlier comparison.")
        return ContestFolder(Path(out)).read()
    if data is None:
        raise MiradaError("no data is named; say --data and a folder, a table or a sample set, such as --data digits.")
    lengths = sorted(set(LENGTHS) & set(parse_settings(settings).get("train", {})))
    if lengths and (minutes is not None or lengths == ["minutes"]):
        raise MiradaError(f"train.{lengths[0]}: the budget of all is --minutes, or else train.steps or train.epochs.")
    minutes = DEFAULT_MINUTES if minutes is None and not lengths else minutes
    contest = Contest(str(data), tuple(entrants), seeds, settings, preset, minutes)
    require_contest(contest)
    return contest


def _opened(contest: Contest, out: str | Path | None, watcher: Watcher) -> ContestFolder:
    """The folder of this comparison; a new one is made only when all entrants were found possible."""
    folder = None if out is None else ContestFolder(Path(out))
    if folder is not None and folder.definition.exists():
        if folder.read() != contest:
            raise MiradaError(
                f"{out}: holds another comparison; give another folder, or `mirada compare --out {out}` without "
                "systems to continue that one."
            )
        if folder.steps.exists():
            return folder
    elif folder is not None and folder.path.exists() and any(folder.path.iterdir()):
        raise MiradaError(f"{out}: already exists and is not empty; give another folder.")
    steps = _steps(contest, watcher)
    folder = folder or ContestFolder(new_run(Path("runs"), f"compare-{Path(contest.source).stem}").path)
    folder.write(contest)
    write_json(folder.steps, steps)
    return folder


def _plan(contest: Contest, entrant: Entrant, watcher: Watcher) -> tuple[Config, AnyPrepared]:
    settings = [*contest.settings, *entrant.settings, "baseline.name=none"]
    return plan(what_was_said(contest.source, entrant.system, None, settings), contest.preset, watcher)


def _steps(contest: Contest, watcher: Watcher) -> dict[str, dict]:
    """Of every entrant: how many steps its budget is, and what one forward pass costs. Measured once and kept."""
    planned = {entrant.label: _plan(contest, entrant, Watcher()) for entrant in contest.parsed()}
    found: dict[str, dict] = {}
    for label, (config, prepared) in planned.items():
        found[label] = {"steps": config.train.steps, "flops": _flops(config, prepared)}
    if contest.minutes is not None:
        times: dict[str, list[float]] = {label: [] for label in planned}
        for _ in range(ROUNDS):
            for label, (config, prepared) in planned.items():
                times[label].append(_seconds_per_step(config, prepared))
        for label, rounds in times.items():
            seconds = statistics.median(rounds)
            found[label] |= {"steps": max(1, round(60 * contest.minutes / seconds)), "seconds_per_step": seconds}
            watcher.says(f"{label}: {contest.minutes:g} minutes are {found[label]['steps']:,} steps.")
    return found


def _seconds_per_step(config: Config, prepared: AnyPrepared) -> float:
    device = device_named(config.train.device)
    torch.manual_seed(0)
    model, task = new_model(config, prepared), prepared.task(config)
    objective = distillation(config, prepared, task, model, device)
    batches, accumulate = prepared.training(config), config.train.accumulate
    return seconds_per_step(prepared.attached(model, device), task, batches, device, accumulate, objective)


def _flops(config: Config, prepared: AnyPrepared) -> int | None:
    """Of one image; a graph has no such unit."""
    arguments = prepared.arguments()
    if "image_size" not in arguments:
        return None
    torch.manual_seed(0)
    image = torch.zeros(1, arguments["in_channels"], *arguments["image_size"])
    return count_flops(prepared.attached(new_model(config, prepared), torch.device("cpu")), image)


def _train(
    folder: ContestFolder,
    contest: Contest,
    entrant: Entrant,
    seed: int,
    steps: int | None,
    watcher: Watcher,
    stop: StopRequest | None,
) -> None:
    run = folder.run(entrant, seed)
    if run.config.exists():
        resume(run.path, watcher=watcher, stop=stop)
        return
    length = [] if steps is None else [f"train.steps={steps}"]
    settings = [*contest.settings, *entrant.settings, *length, "baseline.name=none", f"train.seed={seed}"]
    train(
        contest.source,
        system=entrant.system,
        preset=contest.preset,
        settings=settings,
        out=run.path,
        watcher=watcher,
        stop=stop,
    )


def _write(folder: ContestFolder, contest: Contest, steps: dict[str, dict]) -> list[Row]:
    """Table and figure of what is there; again after every training."""
    rows = outcome(folder, contest, {label: entry["flops"] for label, entry in steps.items()})
    if rows:
        write_text(folder.path / "table.md", markdown(cells(rows)))
        write_text(folder.path / "table.csv", csv_text(numbers(rows)))
        drawing = figure(rows)
        write_atomically(folder.path / "comparison.png", lambda partial: partial.write_bytes(drawing.light))
    return rows
