"""Accuracy at equal training time on real small data: our preset, the tutorial ViT of the same size, and CNNs.

    python benchmarks/small_data.py                                  everything that is missing, 5 minutes each, 3 seeds
    python benchmarks/small_data.py --minutes 20 --seeds 0
    python benchmarks/small_data.py --datasets cifar10 --contenders preset tutorial
    python benchmarks/small_data.py --table                          only print what there is

One job is one training. Finished jobs are appended to benchmarks/results/small_data.jsonl and not run again. Minutes
become steps once per contender and data set, measured on the first job (let the machine be idle then) and kept in
benchmarks/results/small_data_steps.json.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import shutil
import statistics
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MIRADA_TEST_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results"
RESULTS_FILE = RESULTS / "small_data.jsonl"
STEPS_FILE = RESULTS / "small_data_steps.json"

DATASETS = {
    "cifar10": {"source": DATA / "images" / "cifar10_20k_5k.npz", "settings": ["data.val=0.05"]},
    "fashion": {"source": DATA / "images" / "fashion_mnist", "settings": ["data.val=0.05", "augment.flip=0.5"]},
    "pets": {"source": DATA / "masks" / "pets_sub160.tar", "settings": ["data.val=0.1", "data.image_size=[64,64]"]},
}

# AdamW, cosine, flip and crop, linear patches and a class token, as most tutorials have it.
TUTORIAL = [
    *("system.arguments.stem=linear", "system.arguments.pooling=class", "system.arguments.position=learned"),
    *("system.arguments.patch_keep=1.0", "system.arguments.drop_path=0.0", "system.arguments.attention=standard"),
    *("augment.strength=light", "augment.mixup=0", "augment.cutmix=0", "augment.erase=0", "augment.affine=0"),
    *("train.learning_rate=1e-3", "train.weight_decay=0.05", "train.warmup=0.05", "train.batch_size=128"),
    *("train.label_smoothing=0", "train.average=0", "train.clip=0", "train.schedule=cosine"),
]
CNN = ["train.learning_rate=4e-3", "train.weight_decay=0.05", "augment.strength=light", "train.label_smoothing=0.1"]
CONTENDERS = {
    "preset": [],
    "tutorial": TUTORIAL,
    "cnn-micro": ["system.name=cnn", "system.size=micro", *CNN],
    "cnn-mini": ["system.name=cnn", "system.size=mini", *CNN],
    "cnn-base": ["system.name=cnn", "system.size=base", *CNN],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--set", nargs="*", default=[], dest="extra", help="settings of an experiment, key=value")
    parser.add_argument("--label", default="", help="name of that experiment; it becomes part of the contender")
    args = parser.parse_args()
    if not args.table:
        for seed in args.seeds:
            for dataset in args.datasets:
                for contender in args.contenders:
                    run_job(dataset, contender, args.minutes, seed, args.extra, args.label)
    print_table()


def run_job(dataset: str, contender: str, minutes: float, seed: int, extra: list[str], label: str) -> None:
    settings = [*CONTENDERS[contender], *DATASETS[dataset]["settings"], *extra]
    key = {"dataset": dataset, "contender": contender + label, "minutes": minutes, "seed": seed}
    key["settings"] = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]
    if any(all(job[name] == value for name, value in key.items()) for job in read_jobs()):
        return
    if not DATASETS[dataset]["source"].exists():
        print(f"{dataset}: {DATASETS[dataset]['source']} is missing; set MIRADA_TEST_DATA to the folder that has it.")
        return
    from mirada.train.loop import Progress
    from mirada.verbs.train import Watcher, train

    class Lines(Watcher):
        def says(self, sentence: str) -> None:
            print("  " + sentence, flush=True)

        def advances(self, progress: Progress) -> None:
            if progress.is_evaluated and progress.evaluation is not None:
                accuracy = progress.evaluation["val_accuracy"]
                left = progress.seconds / progress.step * (progress.steps - progress.step)
                print(f"  {progress.step}/{progress.steps} val {accuracy:.4f}, {left:.0f} s left", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        source = unpack_pets(Path(folder)) if dataset == "pets" else DATASETS[dataset]["source"]
        print(f"{dataset}, {contender}{label}, {minutes:g} minutes, seed {seed}", flush=True)
        length = known_steps(key) or [f"train.minutes={minutes}"]
        common = ["baseline.name=none", f"train.seed={seed}", "train.evaluations=10"]
        started = time.monotonic()
        run = train(source, settings=[*settings, *common, *length], out=Path(folder) / "run", watcher=Lines())
        result = run.read_result()
        remember_steps(key, result["steps"])
        job = {
            **key,
            "accuracy": result["accuracy"],
            "n": result["n"],
            "steps": result["steps"],
            "seconds_training": result["seconds_training"],
            "seconds_in_all": round(time.monotonic() - started, 1),
            "epochs": result["images_seen"] / run.read_data()["num_images"]["train"],
            "num_parameters": result["num_parameters"],
            "curve": [[float(row["seconds"]), float(row["val_accuracy"])] for row in run.read_metrics()],
        }
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS_FILE, "a") as file:
        file.write(json.dumps(job) + "\n")
    print(f"  test accuracy {job['accuracy']:.4f} after {job['seconds_training']:.0f} s", flush=True)


def unpack_pets(folder: Path) -> Path:
    """The tar as images and a table of breeds: the breed is the file name up to the last underscore."""
    with tarfile.open(DATASETS["pets"]["source"]) as tar:
        tar.extractall(folder / "pets", filter="data")
    rows = []
    for split in ("train", "test"):
        images = sorted((folder / "pets").rglob(f"{split}/images/*.jpg"))
        rows += [{"path": str(p), "label": p.stem.rsplit("_", 1)[0], "split": split} for p in images]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["path", "label", "split"])
    writer.writeheader()
    writer.writerows(rows)
    (folder / "pets.csv").write_text(table.getvalue())
    return folder / "pets.csv"


def read_jobs() -> list[dict]:
    if not RESULTS_FILE.exists():
        return []
    return [json.loads(line) for line in RESULTS_FILE.read_text().splitlines() if line.strip()]


def _steps_key(key: dict) -> str:
    return "/".join(str(key[name]) for name in ("dataset", "contender", "minutes", "settings"))


def known_steps(key: dict) -> list[str]:
    steps = json.loads(STEPS_FILE.read_text()).get(_steps_key(key)) if STEPS_FILE.exists() else None
    return [f"train.steps={steps}"] if steps else []


def remember_steps(key: dict, steps: int) -> None:
    known = json.loads(STEPS_FILE.read_text()) if STEPS_FILE.exists() else {}
    known.setdefault(_steps_key(key), steps)
    RESULTS.mkdir(exist_ok=True)
    partial = STEPS_FILE.with_suffix(".tmp")
    partial.write_text(json.dumps(known, indent=1) + "\n")
    shutil.move(partial, STEPS_FILE)


def print_table() -> None:
    groups: dict[tuple, list[dict]] = {}
    for job in read_jobs():
        groups.setdefault((job["dataset"], job["minutes"], job["contender"], job["settings"]), []).append(job)
    print(f"\n{'data':<9}{'min':>4}  {'contender':<24}{'params':>10}{'epochs':>8}  accuracy")
    for (dataset, minutes, contender, _), jobs in sorted(groups.items()):
        scores = [100 * job["accuracy"] for job in jobs]
        mean = statistics.mean(scores)
        # Student's t for 2, 3, 4 seeds: the 95 % interval of the mean.
        spread = {2: 12.71, 3: 4.30, 4: 3.18}.get(len(scores), 2.78)
        half = spread * statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else float("nan")
        print(
            f"{dataset:<9}{minutes:>4g}  {contender:<24}{jobs[0]['num_parameters']:>10,}{jobs[0]['epochs']:>8.1f}  "
            f"{mean:.2f} ± {half:.2f} ({len(scores)} seeds)"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
