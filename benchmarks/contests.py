"""Measurements that are a `mirada compare`: timed once on an idle machine, trained at any time, kept for the page."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.jobs import require_idle, write_whole
from benchmarks.timing import machine
from mirada.compare.contest import ContestFolder
from mirada.compare.outcome import cells, markdown, numbers
from mirada.train.files import read_json
from mirada.verbs.compare import compare, open_contest, write_outcome
from mirada.verbs.stages import Watcher


@dataclass(frozen=True)
class Budget:
    """Of every training: minutes on two cores, or so many steps if a measurement is only tried out."""

    minutes: float
    seeds: int
    steps: int | None = None


@dataclass(frozen=True)
class Measurement:
    """A comparison, and the folder that its runs are kept in."""

    folder: Path
    entrants: tuple[str, ...]
    source: Path
    preset: str
    settings: tuple[str, ...]
    budget: Budget

    def time_steps(self) -> None:
        """Minutes become steps, all entrants in turns; done once."""
        if self.budget.steps is None and not ContestFolder(self.folder).steps.exists():
            require_idle()
        open_contest(self.entrants, self.source, watcher=Says(), **self._arguments())

    def train(self, at_once: int) -> None:
        """What is missing. Where others use the machine too it takes longer, and ends in the same place."""
        compare(self.entrants, self.source, watcher=Says(), at_once=at_once, **self._arguments())

    def kept(self) -> dict:
        """What the page shows, of the entrants that are through; nothing if none is."""
        folder = ContestFolder(self.folder)
        rows = write_outcome(folder) if folder.steps.exists() else []
        if not rows:
            return {}
        steps = read_json(folder.steps)
        return {
            "minutes": self.budget.minutes if self.budget.steps is None else None,
            "seeds": self.budget.seeds,
            "preset": self.preset,
            "settings": list(self.settings),
            "machine": machine(),
            "table": cells(rows),
            "rows": numbers(rows),
            "trivial": rows[0].runs[0].read_result()["majority"],
            "steps": {row.entrant.label: steps[row.entrant.label] for row in rows},
        }

    def _arguments(self) -> dict:
        budget, settings = self.budget, self.settings
        length = {"minutes": budget.minutes} if budget.steps is None else {}
        if budget.steps is not None:
            settings = (*settings, f"train.steps={budget.steps}", "train.batch_size=8")
        return {"seeds": budget.seeds, "settings": settings, "preset": self.preset, "out": self.folder, **length}


def add_options(parser: argparse.ArgumentParser, names: list[str]) -> None:
    """Those that every command of such measurements has."""
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, which share the cores")
    parser.add_argument("--only", choices=names)
    parser.add_argument("--try", type=int, dest="steps", help="so many steps each, nothing timed, nothing published")
    parser.add_argument("--calibrate", action="store_true", help="time the steps and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")


def measure_all(found: dict[str, Measurement], args: argparse.Namespace, results_file: Path) -> None:
    """What the options ask for: time all steps first, then train what is missing, keeping what is through."""
    chosen = [found[name] for name in found if args.only in (None, name)]
    if not args.table:
        for measurement in chosen:
            measurement.time_steps()
    for measurement in () if args.table or args.calibrate else chosen:
        measurement.train(args.at_once)
        keep(found, results_file)
    keep(found, results_file)


def keep(found: dict[str, Measurement], results_file: Path) -> None:
    """What is through, beside what the file has of measurements whose runs are on another machine."""
    before = read_json(results_file) if results_file.exists() else {}
    results = {name: kept for name, one in found.items() if (kept := one.kept() or before.get(name))}
    if results:
        write_whole(results_file, results)
    print_tables(results)


class Says(Watcher):
    def says(self, sentence: str) -> None:
        print(sentence, flush=True)


def print_tables(results: dict[str, dict]) -> None:
    for name, kept in results.items():
        if kept.get("table"):
            print(f"\n{name}\n\n{markdown(kept['table'])}", flush=True)
