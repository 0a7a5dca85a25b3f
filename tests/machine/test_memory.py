"""Whether freed memory stays with the process: only while it is asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirada.machine import memory

BLOCK_MB = 256
pytestmark = pytest.mark.skipif(memory._glibc() is None, reason="needs glibc, with nothing set by the user")


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def mb_left_of_a_freed_block() -> float:
    before = resident_mb()
    block = bytearray(b"1") * (BLOCK_MB << 20)
    assert resident_mb() > before + 0.9 * BLOCK_MB
    del block
    return resident_mb() - before


def test_freed_memory_stays_for_the_next_one_and_is_returned_at_the_end():
    begin = resident_mb()
    with memory.kept_for_reuse():
        assert mb_left_of_a_freed_block() > 0.9 * BLOCK_MB
        full = resident_mb()
        assert len(bytearray(b"1") * (BLOCK_MB << 20)) and resident_mb() < full + 0.1 * BLOCK_MB  # the same block again
    assert resident_mb() < begin + 0.1 * BLOCK_MB
    assert mb_left_of_a_freed_block() < 0.1 * BLOCK_MB


def test_it_is_returned_after_a_failure_too():
    begin = resident_mb()
    with pytest.raises(ZeroDivisionError), memory.kept_for_reuse():
        assert mb_left_of_a_freed_block() / 0
    assert resident_mb() < begin + 0.1 * BLOCK_MB


@pytest.mark.parametrize("name", memory.OF_THE_USER)
def test_what_the_user_has_set_stays(name, monkeypatch):
    monkeypatch.setenv(name, "1")
    with memory.kept_for_reuse():
        assert mb_left_of_a_freed_block() < 0.1 * BLOCK_MB


def test_elsewhere_nothing_changes(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    with memory.kept_for_reuse():
        assert mb_left_of_a_freed_block() < 0.1 * BLOCK_MB
