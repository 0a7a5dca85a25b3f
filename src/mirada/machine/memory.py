"""Memory that is freed, and wanted again by the next training step, stays with the process.

A step asks for the same hundreds of megabytes as the one before. glibc returns large blocks to the system as soon as
they are free, and the system has to find and clear new pages for them every time. Told to keep them, it does not
(`benchmarks/throughput.py` measures the time).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# From glibc's malloc.h: how much free memory at the end of the heap, and how large a block, is the system's.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
ALL, LARGEST = 2**31 - 1, 2**30
USUAL_TRIM, USUAL_LARGEST = 64 << 20, 32 << 20  # where glibc arrives by itself in a process that uses large blocks
# Whoever sets one of these has thought about it.
OF_THE_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@contextmanager
def kept_for_reuse() -> Iterator[None]:
    """Within this context; afterwards what is free is returned. Elsewhere than on Linux with glibc nothing changes."""
    glibc = _glibc()
    if glibc is None:
        yield
        return
    glibc.mallopt(TRIM_THRESHOLD, ALL)
    if not glibc.mallopt(MMAP_THRESHOLD, LARGEST):  # as before version 2.35
        glibc.mallopt(MMAP_THRESHOLD, USUAL_LARGEST)
    try:
        yield
    finally:
        glibc.mallopt(TRIM_THRESHOLD, USUAL_TRIM)
        glibc.mallopt(MMAP_THRESHOLD, USUAL_LARGEST)
        glibc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux" or any(name in os.environ for name in OF_THE_USER):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
