"""Accuracy at equal training time on real small data: our preset, the tutorial ViT of the same size, and CNNs.

    python benchmarks/small_data.py --calibrate                      seconds of a step, all contenders, idle machine
    python benchmarks/small_data.py                                  everything that is missing, 5 minutes each, 3 seeds
    python benchmarks/small_data.py --minutes 20 --seeds 0
    python benchmarks/small_data.py --datasets cifar10 --contenders preset tutorial
    python benchmarks/small_data.py --table                          only print what there is

A step of each contender on each data set is timed once, on two threads of an idle machine, and the time is kept in
benchmarks/results/small_data_steps.json: minutes become steps by it. One job is one training of so many steps, in its
own process with one thread, two at a time: that ends in the same place as two threads would, and a busy neighbour
makes it later but not worse. Finished jobs are appended to benchmarks/results/small_data.jsonl and not run again; one
that was stopped goes on from its run folder in benchmarks/runs.
Seconds of a curve are steps times the calibrated time of a step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cct import make_known
from benchmarks.jobs import (
    CIFAR10,
    DATA,
    PETS,
    RESULTS,
    RUNS,
    Lines,
    append_line,
    read_lines,
    require_idle,
    run_all,
    unpack_pets,
    write_whole,
)
from benchmarks.small_data_table import grouped
from benchmarks.timing import machine
from mirada import systems
from mirada.config.load import merge, parse_settings, read_preset, resolve
from mirada.config.schema import Config
from mirada.data import TrainBatches
from mirada.tasks.image import Task
from mirada.train.budget import seconds_per_step
from mirada.train.folder import RunFolder
from mirada.verbs.prepare import open_table, prepare
from mirada.verbs.train import resume, train

RESULTS_FILE = RESULTS / "small_data.jsonl"
STEPS_FILE = RESULTS / "small_data_steps.json"
CALIBRATION_ROUNDS = 5

DATASETS = {
    "cifar10": {
        "source": CIFAR10,
        "preset": "medium-data",
        "settings": ["data.val=0.05"],
        "patch": 4,
    },
    "fashion": {
        "source": DATA / "images" / "fashion_mnist",
        "preset": "medium-data",
        "settings": ["data.val=0.05", "augment.flip=0.5"],
        "patch": 4,
    },
    "pets": {
        "source": PETS,
        "preset": "small-data",
        "settings": ["data.val=0.1", "data.image_size=[64,64]"],
        "patch": 8,
    },
    "photos": {
        "source": PETS,
        "preset": "large-images",
        "settings": ["data.val=0.1", "data.image_size=[128,128]"],
        "patch": 16,
    },
}

# AdamW, cosine, flip and crop, linear patches and a class token, as most tutorials have it; dim and depth of "micro".
TUTORIAL = [
    *("system.arguments.depth=4", "system.arguments.layer_scale=null"),
    *("system.arguments.stem=linear", "system.arguments.pooling=class", "system.arguments.position=learned"),
    *("system.arguments.patch_keep=1.0", "system.arguments.drop_path=0.0", "system.arguments.attention=standard"),
    *("augment.strength=light", "augment.mixup=0", "augment.cutmix=0", "augment.erase=0", "augment.affine=0"),
    *("train.learning_rate=1e-3", "train.weight_decay=0.05", "train.warmup=0.05", "train.batch_size=128"),
    *("train.label_smoothing=0", "train.average=0", "train.clip=0", "train.schedule=cosine", "train.optimiser=adamw"),
]
CNN = ["system.name=cnn", "train.learning_rate=4e-3"]  # the rest is the preset's, augmentation and moving average too
ADAMW = ["train.optimiser=adamw", "train.learning_rate=4e-3"]  # as the presets were before Muon
CONTENDERS = {
    "preset": [],
    "preset-adamw": ADAMW,
    "tutorial": TUTORIAL,
    "cnn-micro": [*CNN, "system.size=micro", "train.optimiser=muon"],
    "cnn-micro-adamw": [*CNN, "system.size=micro", *ADAMW],
    "cnn-mini-adamw": [*CNN, "system.size=mini", *ADAMW],
}
COMPARED = list(CONTENDERS)
# Of images enlarged to the size of the pets, whom benchmarks/transfer.py passes on what is learned.
CONTENDERS["preset-64"] = ["data.image_size=[64,64]", *ADAMW]
# For benchmarks/time_to_accuracy.py: the compact transformer by its published recipe for CIFAR-10, but with our
# augmentation "medium" without CutMix where that has flips and AutoAugment, and a warm-up of the same share of steps.
CONTENDERS["cct"] = [
    *("system.name=cct", "system.size=2/3x2"),
    *("system.arguments.attention_dropout=0.1", "system.arguments.drop_path=0.1"),
    *("augment.strength=medium", "augment.cutmix=0"),
    *("train.learning_rate=5e-4", "train.weight_decay=0.03", "train.warmup=0.05", "train.batch_size=128"),
    *("train.label_smoothing=0.1", "train.average=0", "train.clip=0", "train.schedule=cosine", "train.optimiser=adamw"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--contenders", nargs="+", default=COMPARED, choices=COMPARED)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time, one thread each")
    parser.add_argument("--calibrate", action="store_true", help="time the steps and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        run_job(json.loads(args.job))
        return
    if not args.table:
        pairs = [(d, c) for d in args.datasets for c in args.contenders if is_there(d)]
        for dataset in dict.fromkeys(dataset for dataset, _ in pairs):
            source_of(dataset)  # unpacked before two jobs would do so at once
            calibrate(dataset, args.contenders)
        if not args.calibrate:
            keys = [key_of(d, c, args.minutes, seed) for seed in args.seeds for d, c in pairs]
            run_all(__file__, [key for key in keys if not is_done(key)], args.at_once)
    print_table()


def is_there(dataset: str) -> bool:
    source = DATASETS[dataset]["source"]
    if not source.exists():
        print(f"{dataset}: {source} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    return source.exists()


def settings_of(dataset: str, contender: str) -> list[str]:
    patch = [f"system.arguments.patch_size={DATASETS[dataset]['patch']}"] if contender == "tutorial" else []
    return [
        *CONTENDERS[contender],
        *patch,
        *DATASETS[dataset]["settings"],
        "baseline.name=none",
        "train.evaluations=10",
    ]


def key_of(dataset: str, contender: str, minutes: float, seed: int) -> dict:
    """What makes a job itself: another recipe is another job, also when only what it takes of the preset changed.

    What is a default is left out, so that a new setting makes no other recipe; nor does a default that changes.
    """
    recipe = config_of(dataset, contender).model_dump(mode="json", exclude_defaults=True)
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
    return {"dataset": dataset, "contender": contender, "minutes": minutes, "seed": seed, "settings": digest}


def is_done(key: dict) -> bool:
    """With as many steps as its minutes are now."""
    wanted = key | {"steps": num_steps(key)}
    return any(all(job[name] == value for name, value in wanted.items()) for job in read_jobs())


def num_steps(key: dict) -> int:
    return round(60 * key["minutes"] / calibrated()[steps_key(key)]["seconds_per_step"])


def run_job(key: dict) -> None:
    dataset, contender = key["dataset"], key["contender"]
    make_known()
    seconds, steps = calibrated()[steps_key(key)]["seconds_per_step"], num_steps(key)
    name = f"{dataset} {contender} {key['minutes']:g} min, seed {key['seed']}"
    watcher, folder = (
        Lines(name),
        RunFolder(RUNS / "small_data" / f"{name.replace(',', '')}, {key['settings']}, {steps}"),
    )
    if folder.config.exists():
        run = resume(folder.path, watcher=watcher)
    else:
        settings = [*settings_of(dataset, contender), f"train.seed={key['seed']}", f"train.steps={steps}"]
        preset = DATASETS[dataset]["preset"]
        run = train(source_of(dataset), preset=preset, settings=settings, out=folder.path, watcher=watcher)
    result = run.read_result()
    job = {
        **key,
        "accuracy": result["accuracy"],
        "n": result["n"],
        "steps": steps,
        "seconds_per_step": seconds,
        "seconds_on_one_thread": result["seconds_training"],
        "epochs": result["samples_seen"] / run.read_data()["num_images"]["train"],
        "num_parameters": result["num_parameters"],
        "curve": [[round(int(row["step"]) * seconds, 2), float(row["val_accuracy"])] for row in run.read_metrics()],
    }
    append_line(RESULTS_FILE, job)
    shutil.rmtree(run.path)
    watcher.says(f"test accuracy {job['accuracy']:.4f}")


def calibrate(dataset: str, contenders: list[str]) -> None:
    """Seconds of a step on an idle machine: rounds over all contenders, the calmest; measured once and kept."""
    missing = [contender for contender in contenders if steps_key(key_of(dataset, contender, 0, 0)) not in calibrated()]
    if missing:
        time_steps(dataset, missing)


def time_steps(dataset: str, contenders: list[str]) -> None:
    busy = require_idle()
    times: dict[str, list[float]] = {contender: [] for contender in contenders}
    stages = {contender: ready(source_of(dataset), dataset, contender) for contender in contenders}
    for _ in range(CALIBRATION_ROUNDS):
        for contender, (model, task, batches, how) in stages.items():
            times[contender].append(seconds_per_step(model, task, batches, torch.device("cpu"), **how))
    for contender, found in times.items():
        entry = {"seconds_per_step": min(found), "rounds": [round(seconds, 5) for seconds in found]}
        entry |= {"threads": torch.get_num_threads(), "busy_before": round(busy, 3), "machine": machine()}
        print(f"{dataset} {contender}: {1e3 * entry['seconds_per_step']:.1f} ms a step", flush=True)
        write_whole(STEPS_FILE, calibrated() | {steps_key(key_of(dataset, contender, 0, 0)): entry})


def config_of(dataset: str, contender: str, source: Path | str = "") -> Config:
    given = merge(parse_settings(settings_of(dataset, contender)), {"data": {"source": str(source)}})
    return resolve(read_preset(DATASETS[dataset]["preset"]), given)


def ready(source: Path, dataset: str, contender: str) -> tuple[nn.Module, Task, TrainBatches, dict]:
    """Model, loss, batches, and how a step is made, as the training would have them."""
    make_known()
    config = config_of(dataset, contender, source)
    prepared = prepare(config.data, open_table(config.data))
    model = systems.create(config.system.name, config.system.size, **config.system.arguments, **prepared.arguments())
    return (
        model,
        prepared.task(config),
        prepared.training(config),
        config.train.model_dump(include={"optimiser", "clip"}),
    )


def source_of(dataset: str) -> Path:
    """Of the pets, which lie in an archive, the table of its files, unpacked once."""
    if DATASETS[dataset]["source"] != PETS:
        return DATASETS[dataset]["source"]
    table = RUNS / "data" / "pets.csv"
    return table if table.exists() else unpack_pets(table.parent)


def read_jobs() -> list[dict]:
    return read_lines(RESULTS_FILE)


def steps_key(key: dict) -> str:
    return "/".join(str(key[name]) for name in ("dataset", "contender", "settings"))


def calibrated() -> dict[str, dict]:
    return json.loads(STEPS_FILE.read_text()) if STEPS_FILE.exists() else {}


def print_table() -> None:
    print(f"\n{'data':<9}{'min':>4}  {'contender':<24}{'params':>10}{'epochs':>8}  accuracy")
    for group in grouped(read_jobs()):
        print(
            f"{group.dataset:<9}{group.minutes:>4g}  {group.contender:<24}{group.num_parameters:>10,}"
            f"{group.epochs:>8.1f}  {group.accuracy} (seeds: {len(group.jobs)})"
        )


if __name__ == "__main__":
    main()
