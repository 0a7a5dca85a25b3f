"""How many threads compute, and how they wait for each other: by the size of the work and the load of the machine.

Torch's threads wait for each other hundreds of times in one forward pass, and libgomp lets them spin for milliseconds
before they sleep. On a quiet machine that is the fastest way. Where a neighbour has taken a core, the one that spins
keeps it from the one that is waited for: one image then takes many times as long as by a single thread, and a training
step about twice as long as with threads that sleep (`benchmarks/busy.py` measures both).

So small work has one thread, and where the machine is busy, or may become so unseen (a server), threads sleep. That is
decided before torch is imported, as libgomp reads it once; what the user has set stays.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass

POLICY, OURS = "OMP_WAIT_POLICY", "MIRADA_WAIT_POLICY"
# Whoever sets one of these has thought about it.
OF_THE_USER = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SERVERS = ("serve", "studio")
WITHOUT_TORCH = ("presets", "systems", "check")
SECONDS_TO_LOOK = 0.05
CORES_SPARE = 0.35  # of a core that others may use before it counts as taken
SMALL_FLOPS = 2e9  # of one call: about 40 ms of one core
FEW = 8  # inputs of one call; more are never small


@dataclass(frozen=True)
class Moment:
    """The clock, and the CPU seconds that all processes and this one have used."""

    clock: float
    all_cores: float | None  # None: not told here
    own: float


def now() -> Moment:
    return Moment(time.monotonic(), _used(), time.process_time())


def _used() -> float | None:
    """By all processes but those that give way (nice), and by other machines on the same hardware."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:]]
        user, _, system, _, _, interrupts, soft_interrupts, stolen = ticks[:8]
    except (OSError, ValueError):
        return None
    return (user + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


# The command line imports this first: what others used while it started tells the load without waiting for it.
_start = now()


def num_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_busy(before: Moment, after: Moment) -> bool:
    """Whether others leave fewer cores than this process may use."""
    if before.all_cores is None or after.all_cores is None:
        others = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    else:
        used = after.all_cores - before.all_cores - (after.own - before.own)
        others = max(0.0, used) / max(after.clock - before.clock, 1e-3)
    return (os.cpu_count() or 1) - others < num_cores() - CORES_SPARE


def settle_waiting(
    verb: str | None,
    environment: MutableMapping[str, str] = os.environ,
    is_busy_now: Callable[[], bool] | None = None,
) -> None:
    """Decide how the threads of this process wait; torch must not have been imported yet."""
    if environment.pop(OURS, None):  # of the process that started this one
        environment.pop(POLICY, None)
    if verb is None or verb in WITHOUT_TORCH or is_set_by_user(environment):
        return
    if verb in SERVERS or (is_busy_now or _is_busy_now)():
        environment[POLICY] = environment[OURS] = "PASSIVE"


def is_set_by_user(environment: Mapping[str, str] = os.environ) -> bool:
    return OURS not in environment and any(name in environment for name in OF_THE_USER)


def _is_busy_now() -> bool:
    time.sleep(max(0.0, _start.clock + SECONDS_TO_LOOK - time.monotonic()))
    return is_busy(_start, now())


def num_threads(items: int, flops_of_one: Callable[[], float], most: int) -> int:
    """Of a call with so many inputs, of which each costs so many operations."""
    return most if items > FEW or items * flops_of_one() > SMALL_FLOPS else 1


@contextmanager
def threads_for(items: int, flops_of_one: Callable[[], float]) -> Iterator[None]:
    """Within this context torch has the threads that suit the call, unless the user has set them."""
    import torch

    before = torch.get_num_threads()
    wanted = before if before == 1 or is_set_by_user() else num_threads(items, flops_of_one, before)
    if wanted == before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
