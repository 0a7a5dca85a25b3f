"""Counts and times of a server in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and histograms by name and labels; gauges are asked when somebody looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._about: dict[str, str] = {}
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: dict[str, dict[Labels, tuple[list[int], list[float]]]] = defaultdict(dict)
        self._bounds: dict[str, tuple[float, ...]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def counter(self, name: str, about: str) -> None:
        self._about[name] = about
        self._counts[name]  # so that it is listed before the first time

    def histogram(self, name: str, about: str, bounds: Iterable[float]) -> None:
        self._about[name], self._bounds[name] = about, tuple(bounds)

    def gauge(self, name: str, about: str, ask: Callable[[], float]) -> None:
        self._about[name], self._gauges[name] = about, ask

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        with self._lock:
            self._counts[name][tuple(labels.items())] += amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        key, bounds = tuple(labels.items()), self._bounds[name]
        with self._lock:
            buckets, total = self._histograms[name].setdefault(key, ([0] * (len(bounds) + 1), [0.0]))
            buckets[bisect_left(bounds, value)] += 1
            total[0] += value

    def text(self) -> str:
        with self._lock:
            lines: list[str] = []
            for name, by_labels in self._counts.items():
                lines += self._head(name, "counter")
                lines += [f"{name}{_braces(labels)} {value:g}" for labels, value in by_labels.items()]
            for name in self._bounds:
                lines += self._head(name, "histogram")
                for labels, (buckets, total) in self._histograms[name].items():
                    lines += _histogram(name, labels, self._bounds[name], buckets, total[0])
        for name, ask in self._gauges.items():
            lines += [*self._head(name, "gauge"), f"{name} {ask():g}"]
        return "\n".join(lines) + "\n"

    def _head(self, name: str, kind: str) -> list[str]:
        return [f"# HELP {name} {self._about[name]}", f"# TYPE {name} {kind}"]


def _histogram(name: str, labels: Labels, bounds: tuple[float, ...], buckets: list[int], total: float) -> list[str]:
    lines, so_far = [], 0
    for bound, number in zip((*bounds, float("inf")), buckets, strict=True):
        so_far += number
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        lines.append(f"{name}_bucket{_braces((*labels, ('le', edge)))} {so_far}")
    return [*lines, f"{name}_sum{_braces(labels)} {total:.6f}", f"{name}_count{_braces(labels)} {so_far}"]


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = (value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for _, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for (name, _), value in zip(labels, escaped, strict=True)) + "}"
