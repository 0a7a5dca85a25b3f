"""Where the time of an epoch goes, and our ViT's training step against that of others: part of `make bench`.

    python benchmarks/throughput.py [profile] [step]      both jobs, or the named one; about 17 minutes

Wall time on two threads, so let the machine be idle. Prints tables and writes benchmarks/results/throughput.json.
"""

from __future__ import annotations

import argparse
import functools
import io
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.apart import PAUSE, apart
from benchmarks.jobs import require_idle
from benchmarks.peers import vits
from benchmarks.timing import Timing, gemm_limit, interleave, save, speed_up
from mirada import systems
from mirada.core.flops import count_flops
from mirada.machine.memory import kept_for_reuse

THREADS = 2
CALLS = 4  # steps of a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="jobs to run (default: all)")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--epochs", type=int, default=5, help="of the profile, after one that does not count")
    parser.add_argument("--images", type=int, default=10_000, help="of the profile")
    parser.add_argument("--rounds", type=int, default=15, help="turns of every model")
    parser.add_argument("--try", action="store_true", dest="is_trial", help="print only; do not write the results")
    args = parser.parse_args()
    if unknown := set(args.jobs) - {"profile", "step"}:
        parser.error(f"no job is called {', '.join(unknown)}: there are profile, step")
    if not args.is_trial:
        require_idle()
    torch.set_num_threads(args.threads)
    results: dict = {"threads": args.threads}
    if "profile" in args.jobs or not args.jobs:
        results["profile"] = bench_profile(args.epochs, args.images)
    if "step" in args.jobs or not args.jobs:
        results["step"] = bench_step(args.rounds)
    if not args.is_trial:
        print("Written:", save("throughput", results))


# Where the time of an epoch goes.

PRESETS = ("medium-data", "small-data", "tiny-images")
DIGITS = "tiny-images"  # the preset of the digits that come with us, for as many epochs as it takes a minute to train
DIGITS_EPOCHS = 200
# "rest" is what no other part has claimed: seeds, the learning rate, reading the loss, logging.
LEARNING = ("forward and loss", "backward", "optimiser")
OUTSIDE = ("batches", "moving average", "checkpoints", "watching", "rest")
EVALUATION = "evaluation"


class Stopwatch:
    """Wall time by part, of which the outermost running one is charged; only while it is on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys((*LEARNING, *OUTSIDE, EVALUATION), 0.0)
        self.is_on = False
        self._is_charging = False
        self._started = 0.0

    def around(self, part: str, function: Callable) -> Callable:
        """The same function, whose time is charged to the part."""

        @functools.wraps(function)
        def timed(*args, **kwargs):
            if self._is_charging:
                return function(*args, **kwargs)
            self._is_charging = True
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._is_charging = False
                if self.is_on:
                    self.seconds[part] += time.perf_counter() - started

        return timed

    def start(self) -> None:
        self.is_on = True
        self._started = time.perf_counter()

    def stop(self) -> None:
        self.is_on = False
        whole = time.perf_counter() - self._started
        self.seconds["rest"] = whole - sum(seconds for part, seconds in self.seconds.items() if part != "rest")


def bench_profile(epochs: int, num_images: int) -> dict:
    """Epochs of `mirada train` on images in memory, of the shape of CIFAR-10, with the presets for them; and digits."""
    results = {}
    print(f"{epochs} epochs of {num_images:,} images in memory, 32 × 32 × 3: share of the time without evaluation")
    for preset in PRESETS:
        results[preset] = profile(preset, epochs, num_images)
        print(f"  {preset}: {results[preset]['seconds_per_epoch']:.1f} s per epoch")
        for part, share in results[preset]["share"].items():
            print(f"    {part:<18}{share:7.2%}")
        print(f"    outside forward, backward and optimiser: {results[preset]['outside']:.2%}")
        print(f"    (evaluation, once per epoch, took another {results[preset]['evaluation']:.2%})", flush=True)
    print()
    return results


def profile(preset: str, epochs: int, num_images: int) -> dict:
    """Shares of the parts of training; nothing in the product knows that it is watched."""
    from mirada.cli.progress import Lines
    from mirada.verbs.train import train

    watch = Stopwatch()
    are_digits = preset == DIGITS
    epochs = DIGITS_EPOCHS if are_digits else epochs
    # An evaluation per epoch, but of digits, whose epochs take a moment, as many as there are by default.
    often = [] if are_digits else [f"train.evaluations={epochs + 1}"]
    settings = ["baseline.name=none", f"train.epochs={epochs + 1}", *often]
    with tempfile.TemporaryDirectory() as folder, watched(watch):
        source: Path | str = "digits" if are_digits else Path(folder) / "images.npz"
        if not are_digits:
            pixels = np.random.default_rng(0).integers(0, 256, (num_images, 32, 32, 3), dtype=np.uint8)
            np.savez(source, x=pixels, y=np.arange(num_images) % 10)
        with redirect_stdout(io.StringIO()):  # what a terminal would show is part of the work
            run = train(source, preset=preset, settings=settings, out=Path(folder) / "run", watcher=Lines())
        counts = run.read_data()["num_images"]
    training = {part: seconds for part, seconds in watch.seconds.items() if part != EVALUATION}
    whole = sum(training.values())
    share = {part: seconds / whole for part, seconds in training.items()}
    return {
        "epochs": epochs,
        "num_images": counts,
        "seconds_per_epoch": whole / epochs,
        "share": share,
        "outside": sum(share[part] for part in OUTSIDE),
        "evaluation": watch.seconds[EVALUATION] / whole,
    }


@contextmanager
def watched(watch: Stopwatch) -> Iterator[None]:
    """The parts of the training loop, timed from outside, from the second epoch on."""
    from accelerate import Accelerator
    from accelerate.optimizer import AcceleratedOptimizer

    from mirada.train import loop
    from mirada.train.average import MovingAverage
    from mirada.verbs import stages

    plain_fit, plain_endless = loop.fit, loop.endless

    def endless(batches, position):
        following = watch.around("batches", functools.partial(next, plain_endless(batches, position)))
        for number in itertools.count():
            if number == len(batches):  # memory and kernels are prepared in the first epoch
                watch.start()
            yield following()

    def fit(model, task, batches, evaluate, *args, **kwargs):
        evaluate, told = watch.around(EVALUATION, evaluate), watch.around("watching", kwargs.pop("watch"))
        forward = ((type(model), "forward", "forward and loss"), (type(task), "loss", "forward and loss"))
        with timed_methods(watch, *forward):
            try:
                return plain_fit(model, task, batches, evaluate, *args, watch=told, **kwargs)
            finally:
                watch.stop()

    parts = (
        (Accelerator, "backward", "backward"),
        (Accelerator, "clip_grad_norm_", "optimiser"),
        (AcceleratedOptimizer, "step", "optimiser"),
        (AcceleratedOptimizer, "zero_grad", "optimiser"),
        (MovingAverage, "update", "moving average"),
        (loop.Training, "save", "checkpoints"),
        (loop, "save_tensors", "checkpoints"),
    )
    replaced = mock.patch.object(stages, "fit", fit), mock.patch.object(loop, "endless", endless)
    with replaced[0], replaced[1], timed_methods(watch, *parts):
        yield


@contextmanager
def timed_methods(watch: Stopwatch, *methods: tuple[object, str, str]) -> Iterator[None]:
    """(owner, name, part): that attribute is timed meanwhile."""
    with ExitStack() as patches:
        for owner, name, part in methods:
            patches.enter_context(mock.patch.object(owner, name, watch.around(part, getattr(owner, name))))
        yield


# The training step of a ViT against those of other libraries.

STEPS: dict[str, tuple[int, int, dict]] = {  # batch, side of the image, arguments
    "32 px, patch 4, dim 192, depth 4, MLP 4, batch 64": (
        *(64, 32),
        {"patch_size": 4, "dim": 192, "depth": 4, "num_heads": 3},
    ),
    "32 px, patch 4, dim 128, depth 4, MLP 2, batch 64": (
        *(64, 32),
        {"patch_size": 4, "dim": 128, "depth": 4, "num_heads": 4, "mlp_ratio": 2.0},
    ),
    "Ti/16: 224 px, patch 16, dim 192, depth 12, MLP 4, batch 8": (
        *(8, 224),
        {"patch_size": 16, "dim": 192, "depth": 12, "num_heads": 3},
    ),
}


USUAL = "mirada, usual memory"  # as in a loop of one's own


def bench_step(rounds: int, calls: int = CALLS, steps: dict[str, tuple[int, int, dict]] | None = None) -> dict:
    """Forward, loss, backward and fused AdamW of the same ViT: linear patches, class token, learned positions."""
    results = {}
    limit = gemm_limit(torch.get_num_threads())
    print(f"Training step: ms of wall time; a ratio is their time over ours. A product reaches {limit:.0f} GFLOP/s.")
    for label, shape in (steps or STEPS).items():
        num_parameters = {name: sum(p.numel() for p in model.parameters()) for name, model in models_of(shape).items()}
        num_parameters[USUAL] = num_parameters["mirada"]
        if "timm" not in num_parameters:
            print("  timm is not installed: run this in .venv-peers (`make bench`)")
            return {}
        assert num_parameters["mirada"] == num_parameters["timm"], "not the same shape"
        with ExitStack() as processes:
            candidates: dict[str, Callable[[], None]] = {}
            for name in num_parameters:
                candidates |= processes.enter_context(apart(steps_of, name, shape, calls, torch.get_num_threads()))
            turns = interleave(candidates, rounds, clock=time.perf_counter, pause=PAUSE)
        taken = {name: Timing(tuple(seconds / calls for seconds in turn.seconds)) for name, turn in turns.items()}
        ratios = {name: speed_up(taken["mirada"], taken[name]) for name in taken if name != "mirada"}
        batch, side, _ = shape
        flops = 3 * count_flops(models_of(shape)["mirada"], torch.randn(batch, 3, side, side))
        gflops = flops / 1e9 / (taken["mirada"].ms / 1e3)
        results[label] = {
            "ms": {name: timing.ms for name, timing in taken.items()},
            "faster_than": {name: [ratio.median, ratio.low, ratio.high] for name, ratio in ratios.items()},
            "num_parameters": num_parameters,
            "gflops": gflops,
            "of_the_limit": gflops / limit,
            "rounds": rounds,
            "calls": calls,
        }
        told = ", ".join(f"{name} {ratio}" for name, ratio in ratios.items())
        print(f"  {label}: {taken['mirada'].ms:.1f} ms, {100 * gflops / limit:.0f} % of a product's rate; {told}")
    print()
    return {"gemm_gflops": limit, "shapes": results} if results else {}


def models_of(shape: tuple[int, int, dict]) -> dict[str, nn.Module]:
    """Ours, and those of the libraries that are there."""
    _, side, arguments = shape
    torch.manual_seed(0)
    ours = systems.create("vit", "Ti/16", image_size=(side, side), in_channels=3, num_classes=10, **arguments)
    return {"mirada": ours, **vits(image_size=side, num_classes=10, **arguments)}


def steps_of(library: str, shape: tuple[int, int, dict], calls: int, threads: int) -> dict[str, Callable[[], None]]:
    """In a process of its own: so many steps one after the other; ours with the memory policy of `mirada train`."""
    torch.set_num_threads(threads)
    model = models_of(shape)["mirada" if library == USUAL else library].train()
    batch, side, _ = shape
    images, targets = torch.randn(batch, 3, side, side), torch.randint(10, (batch,))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    policy = kept_for_reuse() if library == "mirada" else nullcontext()
    policy.__enter__()

    def run(policy: object = policy) -> None:  # which is kept as long as the process
        for _ in range(calls):
            nn.functional.cross_entropy(model(images), targets).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    return {library: run}


if __name__ == "__main__":
    main()
