"""Training by two processes against one, a map by two workers against one.

    python benchmarks/scale_out.py [train] [large] [map]     all jobs, or the named ones; about 20 minutes
    --try                                                    tiny ones, on a busy machine too, into the temporary folder

`torchrun` starts two processes of one thread each; beside them one process of one thread trains the same model on the
same batches, in turns: `train` on batches as the preset has them, `large` on four times as large ones. The losses must
agree to 1e-5. In every round two processes that share nothing multiply matrices beside one that does: what the machine,
which others may use too, has to give. Then a raster is mapped by a Dask cluster of one worker and of two, in turns too;
the maps must be equal.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.jobs import RESULTS, ROOT, require_idle, told, write_whole
from benchmarks.page_speed import scale_text
from benchmarks.timing import Timing, machine, speed_up
from mirada.train.files import read_json

PROCESSES = (1, 2)
JOBS = ("train", "large", "map")
BATCHES = {"train": (64, 60), "large": (256, 16)}  # size, steps
TRIAL = (64, 4)
ROUNDS, SIDE = 5, 4096
AGREE = 1e-5
MODEL = {"dim": 192, "depth": 4, "num_heads": 3, "patch_size": 4, "stem": "linear", "dropout": 0.0, "drop_path": 0.0}
SECONDS = 5.0  # of matrix products
PRODUCTS = """
import sys, time, torch
torch.set_num_threads(1)
matrix, count, end = torch.randn(768, 768), 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    matrix @ matrix
    count += 1
print(count)
"""
TINY = {"dim": 16, "depth": 1, "num_heads": 2, "patch_size": 8, "stem": "linear", "dropout": 0.0, "drop_path": 0.0}


def make_images(path: Path, count: int) -> Path:
    """Noise in ten shades: 32 × 32 in colour."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, count)
    images = draw.normal(20 + 20 * labels[:, None, None, None], 20, (count, 32, 32, 3)).clip(0, 255)
    np.savez(path, images=images.astype(np.uint8), labels=labels)
    return path


def train(data: Path, run: Path, processes: int, batch: int, steps: int, model: dict) -> dict:
    """Seconds of a step, the first half left out, and the losses."""
    settings = [f"system.arguments.{name}={value}" for name, value in model.items()]
    settings += [f"train.steps={steps}", f"train.batch_size={batch}", "train.evaluations=4", "augment.strength=medium"]
    command = ["-m", "mirada", "train", str(data), "--system", "vit", "--out", str(run), "--quiet", *settings]
    command += ["--baseline", "none", "--device", "cpu"]
    if processes > 1:
        command = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *command], check=True, env=environment)
    with open(run / "metrics.csv", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    middle, last = rows[len(rows) // 2 - 1], rows[-1]
    seconds = (last["seconds"] - middle["seconds"]) / (last["step"] - middle["step"])
    return {"seconds": seconds, "losses": [row[name] for row in rows for name in ("train_loss", "val_loss")]}


def products(processes: int, seconds: float) -> int:
    """How many products of matrices so many processes compute at once, one thread each."""
    command = [sys.executable, "-c", PRODUCTS, str(seconds)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return sum(int(process.communicate()[0]) for process in started)


def trainings(folder: Path, rounds: int, batch: int, steps: int, model: dict, images: int, seconds: float) -> dict:
    folder.mkdir()
    data = make_images(folder / "images.npz", images)
    found: dict[int, list[dict]] = {processes: [] for processes in PROCESSES}
    limits = []
    for number in range(rounds):
        alone, both = (products(processes, seconds) for processes in PROCESSES)
        limits.append(both / alone)
        for processes in PROCESSES if number % 2 else reversed(PROCESSES):
            found[processes].append(train(data, folder / f"run-{number}-{processes}", processes, batch, steps, model))
        print(f"training on batches of {batch}, round {number + 1} of {rounds} is done", flush=True)
    one, two = (np.array([each["losses"] for each in found[processes]]) for processes in PROCESSES)
    difference = float(np.abs(two / one - 1).max())
    return _compared([[each["seconds"] for each in found[n]] for n in PROCESSES]) | {
        "limits": limits,
        "batch": batch,
        "steps": steps,
        "difference": difference,
        "agree": difference < AGREE,
    }


def maps(folder: Path, rounds: int, side: int) -> dict:
    from distributed import LocalCluster

    from benchmarks.map_memory import Convolution, make_raster
    from mirada.data.geo.rasters import open_rasters
    from mirada.verbs.maps.map_run import map_rasters

    # Workers import this package too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    raster, small = folder / "raster.tif", folder / "small.tif"
    num_valid = make_raster(raster, side, 0.4)
    make_raster(small, 1024, 0.4)
    seconds: dict[int, list[float]] = {processes: [] for processes in PROCESSES}
    made: set[bytes] = set()
    for number in range(rounds):
        for workers in PROCESSES if number % 2 else reversed(PROCESSES):
            out = folder / f"map-{number}-{workers}.tif"
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0)
            with cluster:
                # So that every worker has imported what it needs; its four tiles go to all.
                map_rasters(
                    Convolution(), open_rasters(small), folder / "first.tif", scheduler=cluster.scheduler_address
                )
                (folder / "first.tif").unlink()
                result = map_rasters(Convolution(), open_rasters(raster), out, scheduler=cluster.scheduler_address)
            seconds[workers].append(result.seconds)
            made.add(out.read_bytes())
        print(f"map, round {number + 1} of {rounds} is done", flush=True)
    return _compared([seconds[n] for n in PROCESSES]) | {"side": side, "pixels": num_valid, "agree": len(made) == 1}


def _compared(seconds: list[list[float]]) -> dict:
    ratio = speed_up(Timing(tuple(seconds[1])), Timing(tuple(seconds[0])))
    return {"seconds": seconds, "ratio": [ratio.median, ratio.low, ratio.high]}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("jobs", nargs="*", help="jobs to run (default: all)")
    words.add_argument("--try", dest="is_trial", action="store_true")
    words.add_argument("--rounds", type=int, default=ROUNDS)
    given = words.parse_args()
    if unknown := set(given.jobs) - set(JOBS):
        words.error(f"no job is called {', '.join(unknown)}: there are {', '.join(JOBS)}")
    if not given.is_trial:
        require_idle()
    rounds, model, images, seconds = (1, TINY, 200, 0.1) if given.is_trial else (given.rounds, MODEL, 2000, SECONDS)
    found = {}
    with tempfile.TemporaryDirectory(prefix="scale-out-") as name:
        for job in [job for job in JOBS if job in given.jobs or not given.jobs]:
            if job == "map":
                found[job] = maps(Path(name), rounds, 512 if given.is_trial else SIDE)
            else:
                batch, steps = TRIAL if given.is_trial else BATCHES[job]
                found[job] = trainings(Path(name) / job, rounds, batch, steps, model, images, seconds)
    place = Path(tempfile.gettempdir()) / "try_scale_out.json" if given.is_trial else RESULTS / "scale_out.json"
    former = read_json(place) if place.exists() and not given.is_trial else {}
    here = {"machine": machine(), "cores": len(os.sched_getaffinity(0))}
    kept = former if all(former.get(name) == value for name, value in here.items()) else {}
    results = {**kept, **here, **found}
    write_whole(place, results)
    print("It works; its times mean nothing." if given.is_trial else scale_text(results), f"Written: {place}", sep="\n")
    if not all(each["agree"] for each in found.values()):
        sys.exit("What several processes give differs from what one gives.")


if __name__ == "__main__":
    told(main)
