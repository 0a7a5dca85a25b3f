"""One image, and a training step, while neighbours use the cores: `python benchmarks/busy.py`.

A ViT of dim 192 and 12 layers at 32 px. In alternating processes, by Mirada's policy of threads and waiting
(mirada.machine.threads) and by torch's defaults, beside 0, 1 and 2 processes that do nothing but use a core each.

    --try      a small model and a few seconds in all, on a busy machine too, into the temporary folder
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

POLICIES = ("mirada", "torch")
NEIGHBOURS = (0, 1, 2)
ARGUMENTS = {"image_size": (32, 32), "in_channels": 3, "num_classes": 10, "patch_size": 4, "dim": 192, "num_heads": 3}
DEPTH, BATCH = 12, 32
ROUNDS, SECONDS = 5, 10.0
# What would decide instead of either policy.
SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def run_job(job: dict) -> dict:
    """In a process of its own: milliseconds of every call, after some that do not count."""
    from mirada.machine import threads

    if job["policy"] == "mirada":
        threads.settle_waiting("predict" if job["what"] == "predict" else "train")
    import torch

    from mirada import systems
    from mirada.core.flops import count_flops

    torch.manual_seed(0)
    model = systems.create("vit", **ARGUMENTS, depth=job["depth"], stem="linear")
    images = torch.randn(1 if job["what"] == "predict" else BATCH, 3, 32, 32)
    if job["what"] == "predict":
        model.eval()
        flops = count_flops(model, images)

        def call() -> None:
            few = threads.threads_for(1, lambda: flops) if job["policy"] == "mirada" else nullcontext()
            with torch.inference_mode(), few:
                model(images)
    else:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        targets = torch.randint(10, (BATCH,))

        def call() -> None:
            torch.nn.functional.cross_entropy(model(images), targets).backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    call()
    call()
    taken: list[float] = []
    begin = time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - begin < job["seconds"]:
        start = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - start))
    taken.sort()
    facts = {"threads": torch.get_num_threads(), "waiting": os.environ.get("OMP_WAIT_POLICY", "")}
    return {"p50_ms": statistics.median(taken), "p95_ms": taken[int(0.95 * (len(taken) - 1))], **facts}


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that use a core each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3 if count else 0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def in_process(job: dict) -> dict:
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def measure(rounds: int, seconds: float, depth: int) -> dict:
    """found[what][policy][neighbours] is a list with a result per round."""
    found: dict = {what: {p: {str(n): [] for n in NEIGHBOURS} for p in POLICIES} for what in ("predict", "train")}
    for number in range(rounds):
        for what in found:
            for count in NEIGHBOURS:
                for policy in POLICIES if number % 2 else reversed(POLICIES):
                    with neighbours(count):
                        job = {"what": what, "policy": policy, "seconds": seconds, "depth": depth}
                        found[what][policy][str(count)].append(in_process(job))
        print(f"round {number + 1} of {rounds} is done", flush=True)
    return found


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--try", dest="is_trial", action="store_true")
    words.add_argument("--rounds", type=int, default=ROUNDS)
    words.add_argument("--job", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.job:
        print(json.dumps(run_job(json.loads(given.job))))
        return
    from benchmarks.jobs import RESULTS, require_idle, write_whole
    from benchmarks.page_speed import busy_text
    from benchmarks.timing import machine

    if given.is_trial:
        found = measure(1, 0.1, 1)
    else:
        require_idle()
        found = measure(given.rounds, SECONDS, DEPTH)
    cores = len(os.sched_getaffinity(0))
    place = Path(tempfile.gettempdir()) / "try_busy.json" if given.is_trial else RESULTS / "busy.json"
    results = {"machine": machine(), "cores": cores, "batch": BATCH, **found}
    write_whole(place, results)
    print("It works; its numbers mean nothing" if given.is_trial else busy_text(results), f"Written: {place}", sep="\n")


if __name__ == "__main__":
    main()
