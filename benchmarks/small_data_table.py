"""The results of benchmarks/small_data.py by contender: what the printed table, the page and the figures show."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import t as student

BUDGETS = (5, 20)  # minutes that are compared; other jobs are of benchmarks/time_to_accuracy.py
RESULTS_FILE = Path(__file__).parent / "results" / "small_data.jsonl"


@dataclass(frozen=True)
class Group:
    """All seeds of one contender on one data set in one budget."""

    dataset: str
    minutes: float
    contender: str
    jobs: tuple[dict, ...]

    @property
    def num_parameters(self) -> int:
        return self.jobs[0]["num_parameters"]

    @property
    def epochs(self) -> float:
        return self.jobs[0]["epochs"]

    @property
    def accuracies(self) -> list[float]:
        """In %, on the test images."""
        return [100 * job["accuracy"] for job in self.jobs]

    @property
    def half_width(self) -> float | None:
        """Of the 95 % interval of the mean (Student's t), if there is more than one seed."""
        count = len(self.jobs)
        if count < 2:
            return None
        return float(student.ppf(0.975, count - 1)) * statistics.stdev(self.accuracies) / count**0.5

    @property
    def accuracy(self) -> str:
        """'81.25 ± 0.40', without the interval if there is one seed."""
        mean, half = statistics.mean(self.accuracies), self.half_width
        return f"{mean:.2f}" if half is None else f"{mean:.2f} ± {half:.2f}"


def grouped(jobs: list[dict]) -> list[Group]:
    """By data set, minutes and contender; of one whose recipe or number of steps changed, the latest runs only."""
    found: dict[tuple, dict[tuple, list[dict]]] = {}
    for job in jobs:
        recipes = found.setdefault((job["dataset"], job["minutes"], job["contender"]), {})
        recipe = job["settings"], job["steps"]
        runs = recipes.pop(recipe, [])
        recipes[recipe] = [*runs, job]  # so that the latest is the last one
    return [Group(*key, tuple(list(found[key].values())[-1])) for key in sorted(found)]


def read_groups(path: Path = RESULTS_FILE, budgets: Sequence[float] | None = BUDGETS) -> list[Group]:
    """Those of some budgets, or of all."""
    if not path.exists():
        return []
    jobs = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return grouped([job for job in jobs if budgets is None or job["minutes"] in budgets])
