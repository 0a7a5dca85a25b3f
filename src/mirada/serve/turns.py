"""One thread runs the model. What came while it was busy, or within a moment, runs as one batch.

A batch of an image costs nearly as much in overhead as a batch of many, and two threads in one model would only share
the cores; decoding is done elsewhere, while the model runs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from mirada.serve.metrics import SIZES, Metrics

Given = TypeVar("Given")
Found = TypeVar("Found")

MOST = 32  # inputs of a batch: more do not run faster on a CPU, and the first of them would wait longer
LINGER = 0.003  # seconds


@dataclass(eq=False)
class _Job:
    work: Callable[[list], Sequence]
    items: list
    is_shared: bool
    done: Future = field(default_factory=Future)


class Turns:
    """Jobs in the order in which they came; those of one kind of work run together where they may."""

    def __init__(self, metrics: Metrics | None = None, most: int = MOST, linger: float = LINGER) -> None:
        self.most, self.linger, self.metrics = most, linger, metrics
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        if metrics is not None:
            metrics.histogram("mirada_batch_size", "Inputs that ran through the model together.", SIZES)
            metrics.gauge("mirada_jobs_waiting", "Jobs that wait for the model.", lambda: len(self._jobs))
        # A daemon, so that a server that is told to stop twice does not hang in a long job.
        self._thread = threading.Thread(target=self._run, name="mirada-model", daemon=True)
        self._thread.start()

    async def together(self, work: Callable[[list[Given]], Sequence[Found]], items: list[Given]) -> list[Found]:
        """work(items), perhaps as part of work(items of several requests): one result per item, in order."""
        return await asyncio.wrap_future(self._add(_Job(work, items, True)))

    async def alone(self, work: Callable[[], Found]) -> Found:
        """work(), when it is its turn."""
        found = await asyncio.wrap_future(self._add(_Job(lambda _: [work()], [None], False)))
        return found[0]

    def close(self) -> None:
        """After the jobs that are there."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _add(self, job: _Job) -> Future:
        with self._changed:
            assert not self._is_closed
            self._jobs.append(job)
            self._changed.notify()
        return job.done

    def _run(self) -> None:
        while jobs := self._next():
            wanted = [job for job in jobs if job.done.set_running_or_notify_cancel()]
            if wanted:
                self._answer(wanted)

    def _next(self) -> list[_Job]:
        with self._changed:
            while not self._jobs and not self._is_closed:
                self._changed.wait()
            if not self._jobs:
                return []
            batch = [self._jobs.popleft()]
            until = time.monotonic() + self.linger
            while batch[0].is_shared:
                self._take(batch)
                left = until - time.monotonic()
                if self._jobs or left <= 0 or self._is_closed or _size(batch) >= self.most:
                    break
                self._changed.wait(left)
            return batch

    def _take(self, batch: list[_Job]) -> None:
        while (
            self._jobs
            and self._jobs[0].is_shared
            and self._jobs[0].work == batch[0].work
            and _size(batch) + len(self._jobs[0].items) <= self.most
        ):
            batch.append(self._jobs.popleft())

    def _answer(self, jobs: list[_Job]) -> None:
        items = [item for job in jobs for item in job.items]
        if self.metrics is not None:
            self.metrics.observe("mirada_batch_size", len(items))
        try:
            found = list(jobs[0].work(items))
            assert len(found) == len(items)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].done.set_exception(error)
            else:  # whose fault it is shows only alone
                for job in jobs:
                    self._answer([job])
            return
        start = 0
        for job in jobs:
            job.done.set_result(found[start : start + len(job.items)])
            start += len(job.items)


def _size(jobs: list[_Job]) -> int:
    return sum(len(job.items) for job in jobs)
