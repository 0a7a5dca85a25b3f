"""Prediction by torch, ONNX Runtime and OpenVINO against timm: `python benchmarks/engines.py [JOB …]` in .venv-peers.

    small   a ViT of 32 px, patch 4, dim 192, depth 12, one image at a time; each engine is a process, in turns
    large   ViT-B at 224 px, one image at a time, likewise
    files   `mirada predict` on 10,000 JPEG files of 64 px against a plain script of timm with a DataLoader of 2
            workers, decoding included, in alternating processes from start to end
    start   one image by a new process: CPU seconds and peak memory of the exported folder, of a run, of timm and of
            transformers

Jobs that have results are not done again unless they are named. About 25 minutes on an idle machine.

    --table   only print what there is
    --try     small models and few files, on any machine, kept apart: to see that it works

A ratio is the other's time over ours, the median of the pairs with their quartiles; it is a tie where they cover 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch import nn

from benchmarks import jobs
from benchmarks.apart import PAUSE, apart
from benchmarks.engine_processes import cold_start, of_files
from benchmarks.jobs import require_idle, told, write_whole
from benchmarks.page_engines import engines_text
from benchmarks.peers import timm_vit
from benchmarks.timing import Timing, gemm_limit, interleave, machine, speed_up
from mirada import systems
from mirada.machine.threads import num_cores
from mirada.train.files import read_json
from mirada.verbs.engines.exported import difference
from mirada.verbs.engines.quantise import save_quantised
from mirada.verbs.engines.session import PACKAGES, open_session
from mirada.verbs.export_onnx import save_onnx

SMALL = {"image_size": 32, "patch_size": 4, "dim": 192, "depth": 12, "num_heads": 3}
LARGE = {"image_size": 224, "patch_size": 16, "dim": 768, "depth": 12, "num_heads": 12}
TINY = {"image_size": 8, "patch_size": 4, "dim": 16, "depth": 2, "num_heads": 2}
MEASURED = {
    "small": SMALL,
    "large": LARGE,
    "rounds": {"small": 41, "large": 11},
    "calls": {"small": 20, "large": 3},
    "trained": {"patch_size": 8, "dim": 192, "depth": 12, "num_heads": 3},
    "steps": 400,
    "files": 10_000,
    "repeats": {"files": 3, "start": 5},
}
TRIED = {
    "small": TINY,
    "large": TINY,
    "rounds": {"small": 2, "large": 2},
    "calls": {"small": 2, "large": 1},
    "trained": {"patch_size": 16, "dim": 16, "depth": 1, "num_heads": 2},
    "steps": 4,
    "files": 24,
    "repeats": {"files": 1, "start": 1},
}
NUM_CLASSES = 10
Answers = dict[str, Callable[[], np.ndarray]]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="jobs to do, again if they have results (default: what is missing)")
    parser.add_argument("--try", action="store_true", dest="is_tried", help="small models, few files, kept apart")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    args = parser.parse_args(words)
    if unknown := set(args.jobs) - set(JOBS):
        parser.error(f"no job is called {', '.join(sorted(unknown))}: there are {', '.join(JOBS)}")
    results_file = (jobs.RUNS / "engines-try" if args.is_tried else jobs.RESULTS) / "engines.json"
    found = read_json(results_file) if results_file.exists() else {}
    if not args.table and found.get("machine") != machine():
        found = {}  # one table, one machine
    sizes = TRIED if args.is_tried else MEASURED
    for name in () if args.table else args.jobs or [name for name in JOBS if name not in found]:
        if not args.is_tried:
            require_idle()
        print(f"{name} ...", flush=True)
        found |= {name: JOBS[name](sizes), "machine": machine(), "cores": num_cores()}
        write_whole(results_file, found)
    print(engines_text(found))


def one_image(name: str, sizes: dict) -> dict:
    """Every engine on the same weights, and timm's ViT of the same shape, on all cores; wall time."""
    shape, rounds, calls = sizes[name], sizes["rounds"][name], sizes["calls"][name]
    limit = gemm_limit(num_cores())
    libraries = ("torch", *PACKAGES, "timm")
    found, taken = answered(candidates_of, [(library, shape, calls) for library in libraries], rounds, calls)
    wanted = found.pop("torch")
    found.pop("timm", None)
    return {
        "shape": shape,
        "rounds": rounds,
        "calls": calls,
        "threads": torch.get_num_threads(),
        "gemm_gflops": limit,
        "num_parameters": sum(weights.numel() for weights in our_vit(shape).parameters()),
        "ms": {name: quartiles(timing) for name, timing in taken.items()},
        "faster_than_timm": {name: ratio(taken[name], taken["timm"]) for name in taken if name != "timm"}
        if "timm" in taken
        else {},
        "difference": {name: difference(outputs, wanted) for name, outputs in found.items()},
    }


def answered(
    make: Callable[..., Answers], of_libraries: list[tuple], rounds: int, calls: int
) -> tuple[dict[str, np.ndarray], dict[str, Timing]]:
    """What each says, and the time of one call: each library's answers, made by `make`, are a process, in turns."""
    with ExitStack() as stack:
        candidates: Answers = {}
        for arguments in of_libraries:
            candidates |= stack.enter_context(apart(make, *arguments))
        found = {name: run() for name, run in candidates.items()}
        turns = interleave(candidates, rounds, clock=time.perf_counter, pause=PAUSE)
    return found, {name: Timing(tuple(seconds / calls for seconds in turn.seconds)) for name, turn in turns.items()}


def our_vit(shape: dict) -> nn.Module:
    torch.manual_seed(0)
    side = shape["image_size"]
    arguments = {**shape, "image_size": (side, side), "in_channels": 3, "num_classes": NUM_CLASSES}
    return systems.create("vit", "Ti/16", **arguments).eval()


def candidates_of(library: str, shape: dict, calls: int) -> Answers:
    """Each answers `calls` times, one after the other; none where the library is not installed."""
    ours = our_vit(shape)
    image = torch.randn(1, 3, shape["image_size"], shape["image_size"])
    if library in PACKAGES:
        once = by_engine(library, ours, image)
    else:
        model = ours if library == "torch" else timm_vit(num_classes=NUM_CLASSES, **shape)
        once = {} if model is None else {library: by_torch(model.eval(), image)}
    return {name: again_and_again(run, calls) for name, run in once.items()}


def again_and_again(run: Callable[[], np.ndarray], calls: int) -> Callable[[], np.ndarray]:
    return lambda: [run() for _ in range(calls)][-1]


def by_torch(model: nn.Module, image: torch.Tensor) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        with torch.inference_mode():
            return model(image).numpy()

    return run


def by_engine(engine: str, model: nn.Module, image: torch.Tensor) -> Answers:
    if importlib.util.find_spec(PACKAGES[engine]) is None:
        return {}
    pixels = image.numpy()
    with tempfile.TemporaryDirectory() as folder:
        whole, rounded = Path(folder) / "model.onnx", Path(folder) / "int8.onnx"
        save_onnx(model, image.expand(2, -1, -1, -1), whole, {})
        files = {f"{engine} float32": whole}
        if engine == "onnx":
            save_quantised(whole, rounded)
            files["onnx int8"] = rounded
        sessions = {name: open_session(path, engine, num_cores()) for name, path in files.items()}
    return {name: partial(session, pixels) for name, session in sessions.items()}


def quartiles(timing: Timing) -> list[float]:
    """Median, and the quarter and three quarters of the times, in ms."""
    ordered = sorted(timing.seconds)
    return [timing.ms, *(1e3 * ordered[round(share * (len(ordered) - 1))] for share in (0.25, 0.75))]


def ratio(ours: Timing, other: Timing) -> list[float]:
    found = speed_up(ours, other)
    return [found.median, found.low, found.high]


def bench_files(sizes: dict) -> dict:
    return in_scratch(
        lambda folder: of_files(folder, sizes["trained"], sizes["steps"], sizes["files"], sizes["repeats"]["files"])
    )


def bench_start(sizes: dict) -> dict:
    return in_scratch(lambda folder: cold_start(folder, sizes["trained"], sizes["steps"], sizes["repeats"]["start"]))


def in_scratch(work: Callable[[Path], dict]) -> dict:
    folder = Path(tempfile.mkdtemp(prefix="mirada-engines-"))
    try:
        return work(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


JOBS: dict[str, Callable[[dict], dict]] = {
    "small": lambda sizes: one_image("small", sizes),
    "large": lambda sizes: one_image("large", sizes),
    "files": bench_files,
    "start": bench_start,
}


if __name__ == "__main__":
    told(main)
