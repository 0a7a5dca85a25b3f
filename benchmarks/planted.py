"""Which explanation points at what the answer depends on? All methods on objects that were planted, and on real pets.

    python benchmarks/planted.py               three seeds of two models; about an hour on two cores
    python benchmarks/planted.py --real        the same methods on photographs of pets with outlines
    python benchmarks/planted.py --seeds 0
    python benchmarks/planted.py --again       measure anew with the models that are trained, after a method changed
    python benchmarks/planted.py --table       only print what there is
    python benchmarks/planted.py --try 3       three steps and few images, in a folder of its own; also with --real

planted   16,000 scripted images of 56 × 56 (benchmarks/planted_data.py), drawn anew for every seed; a ViT with patches
          of 7, dim 64, 4 layers and 4 heads learns which textures are there, read from a class token or from the mean
          of the patches. Explained are 240 pairs of a held-out image and one of its classes.
pets      a ViT with the preset small-data, in patches of 8, learns 37 breeds at 64 px. Explained are 240 test images,
          once for the breed that the model says and once for the true one; the mask is the animal.

One job is one training and all that is measured with it, some minutes in a process of its own with one thread. Its
numbers are appended to benchmarks/results/planted.jsonl; the trained model is kept in benchmarks/runs/.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import jobs
from benchmarks.jobs import PETS, append_line, read_lines, run_all, told
from benchmarks.planted_data import SPLITS, write_data
from benchmarks.planted_measure import Pairs, costs, measure
from benchmarks.planted_pairs import asked, pet_pairs, pets_table, planted_pairs
from benchmarks.planted_table import print_tables
from benchmarks.timing import machine
from mirada.config.load import load_config, read_preset
from mirada.train.folder import RunFolder
from mirada.verbs.load import Trained, load
from mirada.verbs.stages import Watcher
from mirada.verbs.train import resume, train

POOLINGS = ("class", "mean")
NUM_PAIRS = 240
BATCHES = {1: 21, 16: 9}  # images at once, and rounds of timing
STEPS = {"planted": 1600, "pets": 1500}
TRIED_PAIRS = 3
TRIED_SIZES = {"train": 60, "val": 20, "test": 20}
OF_PLANTED = (
    *("system.name=vit", "system.size=null", "system.arguments.stem=linear", "system.arguments.patch_size=7"),
    *("system.arguments.dim=64", "system.arguments.depth=4", "system.arguments.num_heads=4"),
    *("system.arguments.mlp_ratio=4.0", "system.arguments.position=learned", "system.arguments.layer_scale=null"),
    *("system.arguments.drop_path=0.0", "augment.strength=none", "baseline.name=none"),
    *("train.batch_size=64", "train.learning_rate=1e-3", "train.weight_decay=0.05", "train.warmup=0.1"),
    *("train.label_smoothing=0.0", "train.average=0.99", "train.evaluations=8"),
)
OF_PETS = (
    *("data.image_size=[64,64]", "data.fit=squash", "system.arguments.patch_size=8", "baseline.name=none"),
    # As the preset was before Muon: the rate, too, is AdamW's.
    *("train.evaluations=10", "train.optimiser=adamw", "train.learning_rate=4e-3"),
)
PRESET = "small-data"


class Said(Watcher):
    def __init__(self, name: str) -> None:
        self.name = name

    def says(self, sentence: str) -> None:
        print(f"{self.name}: {sentence}", flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="photographs of pets in the place of planted objects")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--at-once", type=int, default=2, help="jobs at a time, one thread each")
    parser.add_argument("--again", action="store_true", help="measure anew with the models that are trained")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    parser.add_argument("--try", type=int, dest="steps", help="so many steps and few images, nothing published")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.job:
        told(lambda: run_job(**json.loads(args.job)))
        return
    keys = [
        key_of("pets" if args.real else "planted", pooling, seed, args.steps)
        for seed in args.seeds
        for pooling in (("mean",) if args.real else POOLINGS)
    ]
    if not args.table:
        if args.real:
            require_pets()
        run_missing([key for key in keys if args.again or not is_done(key)], args.at_once)
    print_tables(read_lines(results_file(args.steps)))


def require_pets() -> None:
    """Unpacked before jobs start, which run beside each other."""
    if not PETS.exists():
        sys.exit(f"{PETS} is missing; set MIRADA_TEST_DATA to the folder that has it.")
    pets_table()


def run_missing(keys: list[dict], at_once: int) -> None:
    if at_once == 1:
        for key in keys:
            run_job(**key)
    else:
        run_all(__file__, keys, at_once)


def key_of(data: str, pooling: str, seed: int, tried_steps: int | None) -> dict:
    """Another recipe is another job."""
    recipe = [OF_PLANTED, SPLITS, NUM_PAIRS] if data == "planted" else [OF_PETS, read_preset(PRESET), NUM_PAIRS]
    digest = hashlib.sha256(json.dumps([*recipe, STEPS[data]]).encode()).hexdigest()[:12]
    return {"data": data, "pooling": pooling, "seed": seed, "recipe": digest, "tried_steps": tried_steps}


def runs_folder(tried_steps: int | None) -> Path:
    return jobs.RUNS / ("planted" if tried_steps is None else "planted-try")


def results_file(tried_steps: int | None) -> Path:
    return (jobs.RESULTS if tried_steps is None else runs_folder(tried_steps)) / "planted.jsonl"


def is_done(key: dict) -> bool:
    done = read_lines(results_file(key["tried_steps"]))
    return any(all(line[name] == value for name, value in key.items()) for line in done)


def run_job(data: str, pooling: str, seed: int, recipe: str, tried_steps: int | None) -> None:
    key = {"data": data, "pooling": pooling, "seed": seed, "recipe": recipe, "tried_steps": tried_steps}
    folder = runs_folder(tried_steps) / f"{data}-{pooling}-{recipe}-{tried_steps or STEPS[data]}-seed{seed}"
    said = Said(f"{data}, {pooling}, seed {seed}")
    run = trained_run(key, folder, said)
    said.says("trained; now all methods")
    trained = load(run, device="cpu")
    questions = questions_to(trained, key)
    first = questions["methods"]
    rounds = {batch: count if tried_steps is None else 1 for batch, count in BATCHES.items()}
    result = run.read_result()
    kept = {
        **key,
        "steps": load_config(run.config).train.steps,
        "num_parameters": result["num_parameters"],
        "accuracy": result["exact_match" if data == "planted" else "accuracy"],
        "num_pairs": len(first.target_B),
        "shared": first.is_shared_B.float().mean().item(),
        "object": first.mask_BHW.float().mean().item(),
        **{name: measure(asked(trained), pairs) for name, pairs in questions.items()},
        "cost": {str(batch): costs(trained.model, first, batch, count) for batch, count in rounds.items()},
        "machine": machine(),
    }
    append_line(results_file(tried_steps), kept)


def questions_to(trained: Trained, key: dict) -> dict[str, Pairs]:
    """What is explained, by its name in the results."""
    is_tried = key["tried_steps"] is not None
    count = TRIED_PAIRS if is_tried else NUM_PAIRS
    if key["data"] == "planted":
        num_test = (TRIED_SIZES if is_tried else SPLITS)["test"]
        return {"methods": planted_pairs(trained, key["seed"], num_test, count)}
    said, true = pet_pairs(trained, key["seed"], count)
    return {"methods": said, "of_true_class": true}


def trained_run(key: dict, folder: Path, said: Watcher) -> RunFolder:
    """Begun, continued or finished before."""
    run, is_planted = RunFolder(folder / "run"), key["data"] == "planted"
    if run.is_finished:
        return run
    source = folder / "planted.npz" if is_planted else pets_table()
    if is_planted and not source.exists():
        write_data(source, key["seed"], SPLITS if key["tried_steps"] is None else TRIED_SIZES)
    if run.config.exists():
        resume(run.path, watcher=said)
    else:
        own = (*OF_PLANTED, f"system.arguments.pooling={key['pooling']}") if is_planted else OF_PETS
        settings = [*own, f"train.steps={key['tried_steps'] or STEPS[key['data']]}", f"train.seed={key['seed']}"]
        train(source, preset=PRESET, settings=settings, out=run.path, watcher=said)
    if is_planted:
        source.unlink()  # 170 MB that can be made again
    return run


if __name__ == "__main__":
    told(main)
