"""The results of benchmarks/planted.py: means over seeds with intervals, and which method is worth its cost."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from mirada.compare.outcome import markdown
from mirada.compare.statistics import Interval, mean_over_seeds
from mirada.explain.methods import METHODS

TITLES = {
    "random": "*random*",
    "centre": "*centre of the image*",
    "oracle": "*oracle: the mask itself, by patch*",
    **{name: method.title for name, method in METHODS.items()},
    "published_rollout": "rollout as published",
    "published_gradient_rollout": "gradient rollout as published",
}
WHERE = {
    "pointing": "pointing",
    "pointing_shared": "pointing, two objects",
    "energy": "energy",
    "precision": "average precision",
    "mean_iou": "mean IoU",
}
DEPENDS = {
    "deletion": "deletion ↓",
    "insertion": "insertion ↑",
    "positive": "positive ↓",
    "negative": "negative ↑",
    "sanity": "sanity → 0",
}
CHEAP = 6.0  # plain forwards that the default method may cost


@dataclass(frozen=True)
class Group:
    """All seeds of one model on one data set, with the latest recipe and of each seed its latest measurement."""

    data: str
    pooling: str
    jobs: tuple[dict, ...]

    def number(self, method: str, metric: str, question: str = "methods") -> Interval | None:
        values = [job[question][method].get(metric) for job in self.jobs if method in job.get(question, {})]
        return mean_over_seeds(values) if values and None not in values else None

    def cost(self, method: str, batch: int) -> tuple[float, float, float]:
        """Median over the seeds of the median, and of both quartiles."""
        ratios = [job["cost"][str(batch)][method] for job in self.jobs]
        median, low, high = (statistics.median(ratio[place] for ratio in ratios) for place in range(3))
        return median, low, high

    def difference(self, one: str, other: str, metric: str) -> Interval:
        """Of two methods on the same models and images."""
        return mean_over_seeds([job["methods"][one][metric] - job["methods"][other][metric] for job in self.jobs])


def grouped(lines: list[dict]) -> list[Group]:
    latest = {(line["data"], line["pooling"]): line["recipe"] for line in lines}
    found: dict[tuple[str, str], dict[int, dict]] = {}
    for line in lines:
        name = (line["data"], line["pooling"])
        if line["recipe"] == latest[name]:
            found.setdefault(name, {})[line["seed"]] = line
    return [Group(*name, tuple(by_seed[seed] for seed in sorted(by_seed))) for name, by_seed in found.items()]


def rows(group: Group, metrics: dict[str, str], question: str = "methods") -> list[dict[str, str]]:
    """One for every method and reference; columns that nobody has are left out."""
    shown = [
        (method, {name: group.number(method, name, question) for name in metrics})
        for method in TITLES
        if method in group.jobs[0].get(question, {})
    ]
    used = [name for name in metrics if any(numbers[name] is not None for _, numbers in shown)]
    return [{"method": TITLES[m], **{metrics[name]: written(numbers[name]) for name in used}} for m, numbers in shown]


def cost_cells(group: Group) -> dict[str, dict[str, str]]:
    """By the title of a method: forwards of one image, and of many."""
    cells = {}
    for method in METHODS:
        if all(method in job["cost"][batch] for job in group.jobs for batch in job["cost"]):
            ratios = {batch: group.cost(method, int(batch)) for batch in group.jobs[0]["cost"]}
            cells[TITLES[method]] = {
                f"cost, {batch} at once": f"{median:.1f} ({low:.1f}–{high:.1f})"
                for batch, (median, low, high) in ratios.items()
            }
    return cells


def depends_rows(group: Group) -> list[dict[str, str]]:
    costs = cost_cells(group)
    heads = next(iter(costs.values()), {})
    return [{**row, **costs.get(row["method"], dict.fromkeys(heads, ""))} for row in rows(group, DEPENDS)]


def affordable(groups: list[Group]) -> list[str]:
    """Methods that cost at most so many forwards on every model, for one image and for many; the most precise first."""

    def worst(method: str) -> float:
        return max(group.cost(method, int(batch))[0] for group in groups for batch in group.jobs[0]["cost"])

    def precision(method: str) -> float:
        found = [group.number(method, "precision") for group in groups]
        return statistics.mean(interval.value for interval in found if interval is not None)

    known = [method for method in METHODS if all(method in job["methods"] for group in groups for job in group.jobs)]
    return sorted((method for method in known if worst(method) <= CHEAP), key=precision, reverse=True)


def written(interval: Interval | None) -> str:
    if interval is None:
        return ""
    number = f"{interval.value:.3f}"
    half = "" if interval.high is None else f" ± {interval.high - interval.value:.3f}"
    return (number + half).replace("-", "−")


def print_tables(lines: list[dict]) -> None:
    for group in grouped(lines):
        print(f"\n{group.data}, {group.pooling}, {len(group.jobs)} seeds\n")
        print(markdown(rows(group, WHERE)))
        print(markdown(depends_rows(group)))
