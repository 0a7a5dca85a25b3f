"""What the measurements of trainings on text share: contenders, minutes that become steps, runs that are continued.

A step of each contender is timed once, on two threads of an idle machine, in turns and on the same batches, and kept in
benchmarks/results/<name>_steps.json: minutes become steps by it. One job is one training of so many steps, in its own
process with one thread, two at a time; its run folder is kept in benchmarks/runs/ and continued where it stopped, its
numbers are appended to benchmarks/results/<name>.jsonl.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import jobs
from benchmarks.jobs import Lines, append_line, read_lines, require_idle, run_all, write_whole
from mirada.config.load import load_config, read_preset
from mirada.train.files import read_json
from mirada.train.folder import RunFolder
from mirada.train.loop import Progress
from mirada.verbs.stages import Watcher, new_model
from mirada.verbs.train import plan, resume, train, what_was_said

ROUNDS, STEPS_A_ROUND = 5, 8
TRIED_STEPS = 2


@dataclass(frozen=True)
class Contender:
    """A training: on which text, by which preset, and what differs from it; of `steps`, or of the minutes given."""

    source: Path
    preset: str
    settings: tuple[str, ...] = ()
    steps: int | None = None

    @property
    def digest(self) -> str:
        """Another recipe is another job, also when only the preset changed."""
        recipe = [self.settings, read_preset(self.preset), self.steps]
        return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Study:
    """`judge` says what is kept of a finished run. One that is only tried out keeps all it writes to itself."""

    name: str
    script: str
    contenders: dict[str, Contender]
    judge: Callable[[RunFolder], dict]
    is_tried: bool = False

    @property
    def runs(self) -> Path:
        return runs_of(self.name, self.is_tried)

    @property
    def results(self) -> Path:
        return self.runs if self.is_tried else jobs.RESULTS

    @property
    def results_file(self) -> Path:
        return self.results / f"{self.name}.jsonl"

    @property
    def steps_file(self) -> Path:
        return self.results / f"{self.name}_steps.json"

    def calibrated(self) -> dict[str, dict]:
        return read_json(self.steps_file) if self.steps_file.exists() else {}

    def key(self, name: str, minutes: float, seed: int) -> dict:
        contender = self.contenders[name]
        length = None if contender.steps is not None else minutes
        return {"contender": name, "minutes": length, "seed": seed, "settings": contender.digest}

    def found(self) -> list[dict]:
        """What is measured, of the recipes as they are now."""
        recipes = {(name, contender.digest) for name, contender in self.contenders.items()}
        return [job for job in read_lines(self.results_file) if (job["contender"], job["settings"]) in recipes]

    def is_done(self, key: dict) -> bool:
        return any(all(job[name] == value for name, value in key.items()) for job in self.found())

    def run_of(self, key: dict) -> RunFolder:
        length = "steps" if key["minutes"] is None else f"{key['minutes']:g}min"
        return RunFolder(self.runs / f"{key['contender']}-{key['settings']}-{length}-seed{key['seed']}")

    def time_steps(self) -> None:
        """Of the contenders whose minutes are not known as steps yet."""
        known = self.calibrated()
        missing = {
            name: c for name, c in self.contenders.items() if c.steps is None and steps_key(name, c) not in known
        }
        if self.is_tried or not missing:
            return
        busy = require_idle()
        stages = {name: Stage(contender) for name, contender in missing.items()}
        taken: dict[str, list[float]] = {name: [] for name in stages}
        for number in range(ROUNDS):
            for name, stage in stages.items():
                taken[name].append(stage.seconds(number * STEPS_A_ROUND))
        for name, rounds in taken.items():
            entry = {"seconds_per_step": statistics.mean(rounds), "rounds": [round(each, 5) for each in rounds]}
            entry |= {"threads": torch.get_num_threads(), "busy_before": round(busy, 3)}
            print(f"{name}: {1e3 * entry['seconds_per_step']:.1f} ms a step", flush=True)
            known[steps_key(name, missing[name])] = entry
        write_whole(self.steps_file, known)

    def steps(self, key: dict) -> int:
        contender = self.contenders[key["contender"]]
        if self.is_tried:
            return TRIED_STEPS
        if contender.steps is not None:
            return contender.steps
        entry = self.calibrated()[steps_key(key["contender"], contender)]
        return round(60 * key["minutes"] / entry["seconds_per_step"])

    def train_missing(self, minutes: float, seeds: Sequence[int], at_once: int) -> None:
        keys = [self.key(name, minutes, seed) for seed in seeds for name in self.contenders]
        missing = [key for key in keys if not self.is_done(key)]
        if at_once == 1:
            for key in missing:
                self.train_one(key)
        else:
            run_all(self.script, [{**key, "is_tried": self.is_tried} for key in missing], at_once)

    def train_one(self, key: dict) -> None:
        """From where it stopped; a run of another length is replaced."""
        run, steps, contender = self.run_of(key), self.steps(key), self.contenders[key["contender"]]
        watcher = TextLines(f"{key['contender']}, seed {key['seed']}")
        if run.path.exists() and not (run.config.exists() and load_config(run.config).train.steps == steps):
            shutil.rmtree(run.path)
        if run.config.exists():
            resume(run.path, watcher=watcher)
        else:
            settings = [*all_settings(contender), f"train.seed={key['seed']}", f"train.steps={steps}"]
            train(contender.source, preset=contender.preset, settings=settings, out=run.path, watcher=watcher)
        result = run.read_result()
        facts = {
            "steps": steps,
            "seconds_on_one_thread": result["seconds_training"],
            "num_parameters": result["num_parameters"],
            "samples_seen": result["samples_seen"],
            "learning_rate": load_config(run.config).train.learning_rate,
            **self.judge(run),
        }
        append_line(self.results_file, {**key, **facts})
        watcher.says("finished")


class Stage:
    """Model, batches and optimiser as the training would have them."""

    def __init__(self, contender: Contender) -> None:
        given = what_was_said(contender.source, None, None, all_settings(contender))
        config, prepared = plan(given, contender.preset, Watcher())
        self.model = new_model(config, prepared).train()
        self.objective = prepared.objective(prepared.task(config))  # type: ignore[arg-type]
        self.batches = prepared.training(config)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-6, fused=True)

    def seconds(self, first: int) -> float:
        """Of a step, the mean over batches `first` and following, after one that does not count."""
        self._step(first)
        begin = time.perf_counter()
        for number in range(first, first + STEPS_A_ROUND):
            self._step(number)
        return (time.perf_counter() - begin) / STEPS_A_ROUND

    def _step(self, number: int) -> None:
        batch = self.batches.batch(0, number % len(self.batches))
        self.objective(self.model, batch.inputs, batch.targets).backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)


class TextLines(Lines):
    """What a training on text says, after its name."""

    def advances(self, progress: Progress) -> None:
        if progress.is_evaluated and progress.evaluation is not None:
            left = progress.seconds / progress.step * (progress.steps - progress.step)
            loss = progress.evaluation["val_loss"]
            self.says(f"{progress.step}/{progress.steps} val loss {loss:.4f}, {left:.0f} s left")


def runs_of(name: str, is_tried: bool) -> Path:
    return jobs.RUNS / (f"{name}-try" if is_tried else name)


def steps_key(name: str, contender: Contender) -> str:
    return f"{name}/{contender.digest}"


def all_settings(contender: Contender) -> list[str]:
    return [*contender.settings, "baseline.name=none"]


def text_file(name: str) -> Path:
    path = jobs.DATA / "text" / name
    if not path.exists():
        sys.exit(f"{path} is missing; set MIRADA_TEST_DATA to the folder that has text/{name}.")
    return path


def excerpt(path: Path, folder: Path, num_lines: int) -> Path:
    """The first lines of a text, to try things out on."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(path, encoding="utf-8") as file:
        (folder / path.name).write_text("".join(itertools.islice(file, num_lines)), "utf-8")
    return folder / path.name


def carry_out(make: Callable[[bool], Study], description: str | None, words: list[str] | None) -> Study | None:
    """The command line of a study: time the steps, train what is missing. None: this is one of its jobs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--try", action="store_true", dest="is_tried", help="two steps of small models, kept apart")
    parser.add_argument("--calibrate", action="store_true", help="time the steps and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.job:
        job = json.loads(args.job)
        make(job.pop("is_tried")).train_one(job)
        return None
    study = make(args.is_tried)
    if not args.table:
        study.time_steps()
    if not (args.table or args.calibrate):
        study.train_missing(args.minutes, args.seeds[:1] if args.is_tried else args.seeds, args.at_once)
    return study


def trained_on(folder: Path, files: dict[str, str], *, system: str, settings: list[str], title: str) -> RunFolder:
    """A run on folder/corpus.txt, from where it stopped; other files or another recipe are another run."""
    recipe, written = {"system": system, "settings": settings, "files": files}, folder / "recipe.json"
    if written.exists() and read_json(written) != recipe:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    write_whole(written, recipe)
    run = RunFolder(folder / "run")
    if run.config.exists():
        resume(run.path, watcher=TextLines(title))
    else:
        train(folder / "corpus.txt", system=system, settings=settings, out=run.path, watcher=TextLines(title))
    return run


def told_of(run: RunFolder) -> dict:
    """What is kept of every such run."""
    result = run.read_result()
    return {name: result[name] for name in ("steps", "seconds_training", "num_parameters", "perplexity")}
