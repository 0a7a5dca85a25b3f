"""Two ways to pass on what was learned: does fine-tuning beat scratch, does a teacher help?

    python benchmarks/transfer.py --calibrate      only time the steps of all, in turns, on an idle machine
    python benchmarks/transfer.py                  everything that is missing: 20 minutes for the two that pass on
                                                   what they learned, 3 for those that take it up, 3 seeds
    python benchmarks/transfer.py --table          only print what there is
    python benchmarks/transfer.py --try 3          three steps each, in folders of its own

fine-tuning   The preset medium-data learns CIFAR-10, enlarged to 64 px, for 20 minutes. On Pets at that size the same
              system starts from these weights (`mirada train --from`), or from scratch, with the preset small-data;
              both have 3 minutes.
distillation  A CNN (cnn:micro, the best of benchmarks/small_data.py) learns CIFAR-10 for 20 minutes and teaches a small
              DeiT, by its answers (hard) or its shares (soft). All students have 3 minutes: as the teacher looks at
              every batch too, a student with a teacher gets fewer steps than one without.

Trainings are kept in benchmarks/runs/ and continued where they stopped, numbers in benchmarks/results/transfer.json.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import small_data
from benchmarks.contests import Budget, Measurement, print_tables
from benchmarks.jobs import CIFAR10, PETS, RESULTS, RUNS, Lines, run_all, told, unpack_pets, write_whole
from mirada.config.load import load_config
from mirada.train.folder import RunFolder
from mirada.verbs.train import resume, train

GIVERS = {"pretrained": "preset-64", "teacher": "cnn-micro-adamw"}  # contenders of benchmarks/small_data.py on CIFAR-10
# By AdamW, as `--from` does, and so is what it is compared with.
FINE_TUNING = ("data.val=0.1", "data.image_size=[64,64]", "train.evaluations=10", "train.optimiser=adamw")
DISTILLATION = ("data.val=0.05", "train.evaluations=10", "train.optimiser=adamw")


@dataclass(frozen=True)
class Places:
    cifar10: Path
    pets: Path
    runs: Path
    results_file: Path

    def giver(self, role: str) -> RunFolder:
        """Another recipe is another folder."""
        digest = small_data.key_of("cifar10", GIVERS[role], 0, 0)["settings"]
        return RunFolder(self.runs / f"{role}-{digest}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="of those that take up what was learned")
    parser.add_argument("--giver-minutes", type=float, default=20.0, help="of the two that pass it on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--try", type=int, dest="steps", help="so many steps each, nothing timed, nothing published")
    parser.add_argument("--calibrate", action="store_true", help="time the steps and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.job:
        job = json.loads(args.job)
        learn(job["role"], RunFolder(Path(job["folder"])), Path(job["source"]), job["steps"])
        return
    places = open_places(is_tried=args.steps is not None)
    budget = Budget(args.minutes, args.seeds, args.steps)
    if not args.table:
        measure(places, budget, args.giver_minutes, args.at_once, only_time=args.calibrate)
    keep(places, budget)


def open_places(is_tried: bool) -> Places:
    for source in (CIFAR10, PETS):
        if not source.exists():
            sys.exit(f"{source} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    runs = RUNS / ("transfer-try" if is_tried else "transfer")
    if not (RUNS / "data" / "pets.csv").exists():
        (RUNS / "data").mkdir(parents=True, exist_ok=True)
        unpack_pets(RUNS / "data")
    return Places(CIFAR10, RUNS / "data" / "pets.csv", runs, (runs if is_tried else RESULTS) / "transfer.json")


def measurements(places: Places, budget: Budget) -> dict[str, Measurement]:
    pretrained, teacher = (shlex.quote(str(places.giver(role).path)) for role in GIVERS)
    # Of the preset for little data; the checkpoint brings that of the preset for more.
    same_system = "system.arguments.drop_path=0.1"
    rates = ("train.learning_rate=4e-3", "train.learning_rate=1e-3")
    pets = (f"scratch: preset {rates[0]}", f"fine-tuned: preset start={pretrained} {same_system} {rates[1]}")
    students = (
        "no teacher: deit:micro",
        f"hard: deit:micro distil.teacher={teacher}",
        f"soft: deit:micro distil.teacher={teacher} distil.kind=soft distil.weight=0.1",  # the paper's weights
    )
    fine_tuning = Measurement(places.runs / "fine-tuning", pets, places.pets, "small-data", FINE_TUNING, budget)
    runs = places.runs / "distillation"
    return {
        "fine-tuning": fine_tuning,
        "distillation": Measurement(runs, students, places.cifar10, "medium-data", DISTILLATION, budget),
    }


def measure(places: Places, budget: Budget, giver_minutes: float, at_once: int, *, only_time: bool) -> None:
    """Time everything first, then train: whoever is slowed down by others afterwards gets its steps all the same."""
    if budget.steps is None:
        small_data.calibrate("cifar10", list(GIVERS.values()))
    takers = measurements(places, budget)
    wanted = {role: budget.steps or steps_of(role, giver_minutes) for role in GIVERS}
    for role in GIVERS:
        if not places.giver(role).config.exists():
            learn(role, places.giver(role), places.cifar10, 1)  # a step takes as long with weights that know nothing
    for measurement in takers.values():
        measurement.time_steps()
    if only_time:
        return
    jobs = [
        {"role": role, "folder": str(places.giver(role).path), "source": str(places.cifar10), "steps": wanted[role]}
        for role in GIVERS
        if not has_learned(places.giver(role), wanted[role])
    ]
    if at_once == 1:
        for job in jobs:
            learn(job["role"], RunFolder(Path(job["folder"])), places.cifar10, job["steps"])
    else:
        run_all(__file__, jobs, at_once)
    for role in GIVERS:
        if not has_learned(places.giver(role), wanted[role]):
            sys.exit(f"{places.giver(role).path}: did not finish; the lines above say why.")
    for measurement in takers.values():
        measurement.train(at_once)
        keep(places, budget)


def steps_of(role: str, minutes: float) -> int:
    key = small_data.steps_key(small_data.key_of("cifar10", GIVERS[role], minutes, 0))
    return round(60 * minutes / small_data.calibrated()[key]["seconds_per_step"])


def has_learned(run: RunFolder, steps: int) -> bool:
    return run.is_finished and run.read_result()["steps"] == steps


def learn(role: str, run: RunFolder, source: Path, steps: int) -> None:
    """So many steps, from where it stopped; a run of another length is replaced."""
    watcher = Lines(role)
    if run.config.exists() and load_config(run.config).train.steps != steps:
        shutil.rmtree(run.path)
    if run.config.exists():
        resume(run.path, watcher=watcher)
        return
    settings = [*small_data.settings_of("cifar10", GIVERS[role]), f"train.steps={steps}"]
    train(source, preset=small_data.DATASETS["cifar10"]["preset"], settings=settings, out=run.path, watcher=watcher)


def keep(places: Places, budget: Budget) -> None:
    results = {name: kept for name, found in measurements(places, budget).items() if (kept := found.kept())}
    if results:
        givers = {role: facts(places.giver(role)) for role in GIVERS}
        write_whole(places.results_file, {"givers": givers, **results})
    print_tables(results)


def facts(run: RunFolder) -> dict:
    result = run.read_result()
    return {name: result[name] for name in ("system", "accuracy", "n", "steps", "num_parameters")}


if __name__ == "__main__":
    told(main)
