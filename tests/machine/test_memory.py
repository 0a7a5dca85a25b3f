"""Whether freed memory stays with the process: only while it is asked to.

Each case is a process of its own: what other tests have freed in this one would be taken up again unseen.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mirada.machine import memory

pytestmark = pytest.mark.skipif(memory._glibc() is None, reason="needs glibc, with nothing set by the user")

MEASURED = """
import sys
from pathlib import Path
from mirada.machine import memory

BLOCK_MB = 256

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024 / BLOCK_MB

def taken():
    block = bytearray(b"1") * (BLOCK_MB << 20)
    return resident()

begin = resident()
"""


def in_blocks(case: str, **environment: str) -> list[float]:
    """What `case` prints: the resident memory in blocks above the beginning."""
    command = [sys.executable, "-c", MEASURED + case]
    # Dask leaves settings of its own behind in a process that has started workers.
    inherited = {name: value for name, value in os.environ.items() if name not in memory.OF_THE_USER}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=inherited | environment)
    return [float(value) for value in done.stdout.split()]


KEPT = """
with memory.kept_for_reuse():
    print(taken() - begin, resident() - begin, taken() - begin)
print(resident() - begin, taken() - begin, resident() - begin)
"""
TAKEN, KEPT_FREE, RETURNED = (pytest.approx(blocks, abs=0.1) for blocks in (1, 1, 0))


def test_freed_memory_stays_for_the_next_one_and_is_returned_at_the_end():
    assert in_blocks(KEPT) == [TAKEN, KEPT_FREE, TAKEN, RETURNED, TAKEN, RETURNED]


def test_it_is_returned_after_a_failure_too():
    case = """
try:
    with memory.kept_for_reuse():
        print(taken() - begin, resident() - begin)
        1 / 0
except ZeroDivisionError:
    print(resident() - begin)
"""
    assert in_blocks(case) == [TAKEN, KEPT_FREE, RETURNED]


@pytest.mark.parametrize("name", memory.OF_THE_USER)
def test_what_the_user_has_set_stays(name):
    value = "glibc.malloc.trim_threshold=1" if name == "GLIBC_TUNABLES" else "1"
    assert in_blocks(KEPT, **{name: value}) == [TAKEN, RETURNED, TAKEN, RETURNED, TAKEN, RETURNED]


def test_elsewhere_nothing_changes():
    assert in_blocks("sys.platform = 'darwin'" + KEPT) == [TAKEN, RETURNED, TAKEN, RETURNED, TAKEN, RETURNED]
