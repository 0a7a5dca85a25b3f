"""What 8-bit weights and products cost in accuracy: models that learned real images, before and after.

    python benchmarks/rounding.py           what is missing, two jobs at a time: about three quarters of an hour
    python benchmarks/rounding.py --table   only print what there is
    python benchmarks/rounding.py --try     a few steps, kept apart

Each is trained by its preset, or as tutorials do it, or is a ViT-B/16 that sees 16 patches, and is then exported by
`mirada export --to onnx --precision int8`, which measures both on the held-out images and refuses to write where more
than half a point is lost. Nothing is timed, so the machine need not be idle.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import jobs
from benchmarks.jobs import Lines, append_line, read_lines, run_all, told
from benchmarks.page_engines import rounding_text
from benchmarks.small_data import DATASETS, is_there, settings_of, source_of
from mirada.errors import MiradaError
from mirada.train.folder import RunFolder
from mirada.verbs.export import export
from mirada.verbs.train import resume, train

STEPS, TRIED_STEPS = {"preset": 1000, "tutorial": 1000, "vit-b": 400}, 3
MODELS = (
    *(("cifar10", "preset"), ("cifar10", "tutorial"), ("fashion", "preset"), ("pets", "preset")),
    ("fashion", "vit-b"),
)
VIT_B = [  # what differs from the tutorial's
    *("system.size=B/16", "system.arguments.depth=12", "system.arguments.patch_size=16", "data.image_size=[64,64]"),
    *("train.batch_size=24", "train.learning_rate=3e-4", "train.clip=1", "train.evaluations=2", "data.val=0.01"),
]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--try", action="store_true", dest="is_tried", help="a few steps, kept apart")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.job:
        carry_out(args.job)
        return
    results = results_file(args.is_tried)
    wanted = [
        {"dataset": dataset, "contender": contender, "steps": TRIED_STEPS if args.is_tried else STEPS[contender]}
        for dataset, contender in MODELS
    ]
    if not args.table:
        done = [{name: kept[name] for name in wanted[0]} for kept in read_lines(results)]
        run_all(__file__, [job for job in wanted if job not in done and is_there(job["dataset"])], at_once=2)
    print(rounding_text(read_lines(results)))


def results_file(is_tried: bool) -> Path:
    return (jobs.RUNS / "rounding-try" if is_tried else jobs.RESULTS) / "rounding.jsonl"


def carry_out(job: dict) -> None:
    dataset, contender, steps = job["dataset"], job["contender"], job["steps"]
    name = f"{dataset} {contender} {steps}"
    folder, watcher = RunFolder(jobs.RUNS / "rounding" / name), Lines(name)
    if folder.config.exists():
        run = resume(folder.path, watcher=watcher)
    else:
        preset = DATASETS[dataset]["preset"]
        settings = [*recipe_of(dataset, contender), f"train.steps={steps}"]
        run = train(source_of(dataset), preset=preset, settings=settings, out=folder.path, watcher=watcher)
    append_line(
        results_file(steps == TRIED_STEPS),
        {**job, "num_parameters": run.read_result()["num_parameters"], **before_and_after(run)},
    )
    shutil.rmtree(run.path)


def recipe_of(dataset: str, contender: str) -> list[str]:
    return [*settings_of(dataset, "tutorial"), *VIT_B] if contender == "vit-b" else settings_of(dataset, contender)


def before_and_after(run: RunFolder) -> dict:
    """Of the held-out images; where too much is lost nothing is written, and the sentence says how much."""
    exported = run.path / "int8"
    try:
        export(run, to="onnx", precision="int8", out=exported)
    except MiradaError as refused:
        if "loses too much" not in str(refused):
            raise
        return {"refused": str(refused).partition(": ")[2]}
    return json.loads((exported / "data.json").read_text())["onnx"]["held_out"]


if __name__ == "__main__":
    told(main)
