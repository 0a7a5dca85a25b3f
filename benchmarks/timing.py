"""Timing that can be trusted: candidates interleaved in one process, paired ratios, spread beside every median.

The clock is the CPU time of the process, so a busy neighbour costs precision and not correctness; with more than one
thread it is wall time, as threads that wait for each other also use the CPU.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Times of one candidate; `seconds[i]` was taken in the same round as every other candidate's."""

    seconds: tuple[float, ...]

    @property
    def ms(self) -> float:
        return 1e3 * statistics.median(self.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times faster `this` is than `other`: the median of the paired ratios and their quartiles."""

    median: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """The spread does not cover 1, so that it can be said which one is faster."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        if self.is_clear:
            return f"{self.median:.2f}×"
        return f"tie ({self.low:.2f}–{self.high:.2f})"


def speed_up(this: Timing, other: Timing) -> Ratio:
    paired = sorted(b / a for a, b in zip(this.seconds, other.seconds, strict=True))
    low, _, high = statistics.quantiles(paired, n=4, method="inclusive") if len(paired) > 1 else paired * 3
    return Ratio(statistics.median(paired), low, high)


def interleave(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
    pause: float = 0.0,
) -> dict[str, Timing]:
    """Run every candidate once per round, every other round backwards, after one round that does not count.

    Each begins after so many seconds of `pause`, in which the threads of the one before fall asleep.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for round_number in range(rounds + 1):
        names = list(candidates) if round_number % 2 else list(reversed(candidates))
        for name in names:
            time.sleep(pause)
            start = clock()
            candidates[name]()
            if round_number:
                seconds[name].append(clock() - start)
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def exponent(sizes: list[int], milliseconds: list[float]) -> float:
    """The slope of log time against log size, by least squares."""
    x, y = [math.log(n) for n in sizes], [math.log(t) for t in milliseconds]
    return statistics.linear_regression(x, y).slope


def gemm_limit(threads: int) -> float:
    """GFLOP/s of a 2048² float32 matrix product on this machine now: what a perfect layer could reach."""
    torch.set_num_threads(threads)
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    clock = time.process_time if threads == 1 else time.perf_counter
    best = min(interleave({"gemm": lambda: a @ b}, rounds=5, clock=clock)["gemm"].seconds)
    return 2 * 2048**3 / best / 1e9


def save(name: str, results: dict) -> Path:
    """Results with the machine they were taken on, as JSON; jobs that were not run this time keep their results."""
    from benchmarks.jobs import write_whole  # which imports mirada: timing alone does not need it

    path = RESULTS / f"{name}.json"
    former = json.loads(path.read_text()) if path.exists() else {}
    kept = former if former.get("machine") == machine() else {}
    write_whole(path, {**kept, "machine": machine(), **results})
    return path


def machine() -> dict[str, str]:
    return {"processor": _processor(), "torch": torch.__version__, "python": platform.python_version()}


# Generations of a processor may share a name; what their speed differs by are these.
INSTRUCTIONS = {"avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx512_bf16": "BF16", "amx_tile": "AMX"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))}
    flags = said.get("flags", "").split()
    known = [name for flag, name in INSTRUCTIONS.items() if flag in flags] or ["AVX2"] * ("avx2" in flags)
    name = said.get("model name") or platform.processor()
    return f"{name} ({', '.join(known)})" if known else name
