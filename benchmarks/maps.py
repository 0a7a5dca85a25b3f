"""Maps: Spatioformer against nearest plots, random forest and gradient boosting, by random and by blocked folds.

    python benchmarks/maps.py                         three data sets, three seeds; about an hour on two cores
    python benchmarks/maps.py --data nz --seeds 0
    python benchmarks/maps.py --table                 only print what there is

One job is one `mirada train` with five folds by each scheme; the seed also draws the folds. Finished jobs are appended
to benchmarks/results/maps.jsonl and not run again; one that was stopped goes on from its run folder in benchmarks/runs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import shutil
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.jobs import DATA, RESULTS, RUNS, append_line, read_lines, run_all, told
from mirada.config.load import read_preset
from mirada.train.files import read_json, write_text
from mirada.train.folder import RunFolder, csv_text
from mirada.verbs.stages import Watcher
from mirada.verbs.train import resume, train

RESULTS_FILE = RESULTS / "maps.jsonl"
GEO = DATA / "geo"
SCHEMES = ("random", "blocked")
SETTINGS = ["maps.folds=5", "maps.schemes=[random, blocked]"]
# Blocks as published baselines used them.
DATASETS = {
    "nz": ("nz_plant_richness.csv", ["data.label_column=richness", "maps.block=100"]),
    "south-america": ("south_america_plant_richness.csv", ["data.label_column=richness", "maps.block=3deg"]),
    "air": ("air_temperature.csv", ["data.label_column=meanT", "data.covariates=[meanP]", "maps.block=10deg"]),
}
SOME_ROWS = {"nz": 6000}


class Said(Watcher):
    def __init__(self, name: str) -> None:
        self.name = name

    def says(self, sentence: str) -> None:
        print(f"{self.name}: {sentence}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--at-once", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        told(lambda: run_job(json.loads(args.job)))
        return
    if not args.table:
        keys = [key_of(name, seed) for seed in args.seeds for name in args.data if is_there(name)]
        run_all(__file__, [key for key in keys if not is_done(key)], args.at_once)
    for line in table():
        print(line)


def is_there(name: str) -> bool:
    path = GEO / DATASETS[name][0]
    if not path.exists():
        print(f"{name}: {path} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    return path.exists()


def key_of(name: str, seed: int) -> dict:
    """Another recipe is another job."""
    recipe = json.dumps([DATASETS[name][1], SETTINGS, read_preset("maps")])
    return {"data": name, "seed": seed, "recipe": hashlib.sha256(recipe.encode()).hexdigest()[:12]}


def is_done(key: dict) -> bool:
    return any(all(line[name] == value for name, value in key.items()) for line in read_lines(RESULTS_FILE))


def run_job(key: dict) -> None:
    name, seed = key["data"], key["seed"]
    folder = RUNS / "maps" / f"{name}-{seed}-{key['recipe']}"
    run, watcher = RunFolder(folder), Said(f"{name}, seed {seed}")
    if run.config.exists():
        resume(run.path, watcher=watcher)
    else:
        settings = [*DATASETS[name][1], *SETTINGS, f"train.seed={seed}", f"data.split_seed={seed}"]
        train(source_of(name), settings=settings, out=run.path, watcher=watcher)
    result, found = run.read_result(), read_json(run.validation)
    kept = {name: result[name] for name in ("num_parameters", "steps", "seconds_training")}
    append_line(RESULTS_FILE, {**key, **kept, "schemes": found["schemes"]})
    shutil.rmtree(folder)


def source_of(name: str) -> Path:
    """The table, or some of its rows, always the same."""
    path = GEO / DATASETS[name][0]
    if name not in SOME_ROWS:
        return path
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    some = RUNS / "maps" / f"{name}-{SOME_ROWS[name]}.csv"
    some.parent.mkdir(parents=True, exist_ok=True)
    write_text(some, csv_text(random.Random(0).sample(rows, SOME_ROWS[name])))
    return some


def groups(results_file: Path = RESULTS_FILE) -> dict[tuple[str, str], list[dict]]:
    """What each scheme gave on each data set, a list over the seeds, of the recipe as it is now."""
    found: dict[tuple[str, str], list[dict]] = {}
    for line in read_lines(results_file):
        if line["recipe"] == key_of(line["data"], 0)["recipe"]:
            for scheme in SCHEMES:
                found.setdefault((line["data"], scheme), []).append(line["schemes"][scheme])
    return found


def r2_text(entries: list[dict], model: str) -> str:
    """Mean over the seeds of R² and of the ends of its interval over blocks."""
    value = statistics.mean(entry["models"][model]["scores"]["r2"] for entry in entries)
    low, high = (statistics.mean(entry["models"][model]["intervals"]["r2"][end] for entry in entries) for end in (0, 1))
    return f"{value:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")


def coverage_text(entries: list[dict]) -> str:
    covered = [entry["coverage"]["rows"] for entry in entries if "coverage" in entry]
    return f"{100 * statistics.mean(covered):.0f} %" if covered else "none"


def table() -> list[str]:
    lines = []
    for (name, scheme), entries in sorted(groups().items()):
        models = "  ".join(f"{model} {r2_text(entries, model)}" for model in entries[0]["models"])
        lines.append(f"{name:14s} {scheme:8s} {models}  covered {coverage_text(entries)}  (seeds: {len(entries)})")
    return lines or ["nothing is measured yet"]


if __name__ == "__main__":
    main()
