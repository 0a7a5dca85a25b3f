"""The section on explanations of docs/measured.md: benchmarks/planted.py."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.jobs import read_lines
from benchmarks.planted_table import (
    CHEAP,
    DEPENDS,
    TITLES,
    WHERE,
    Group,
    affordable,
    depends_rows,
    grouped,
    rows,
    written,
)
from mirada.compare.outcome import markdown
from mirada.compare.statistics import Interval
from mirada.explain.methods import DEFAULT

POOLED = {"class": "a class token", "mean": "the mean of the patches"}
FAULTS = {"published_rollout": "rollout", "published_gradient_rollout": "gradient_rollout"}


def explain_text(results: Path) -> str:
    """All that there is; nothing where nothing is measured."""
    groups = grouped(read_lines(results / "planted.jsonl"))
    return "\n".join(
        filter(
            None,
            (
                planted_text([group for group in groups if group.data == "planted"]),
                pets_text([group for group in groups if group.data == "pets"]),
            ),
        )
    )


def planted_text(groups: list[Group]) -> str:
    if not groups:
        return ""
    first = groups[0].jobs[0]
    text = (
        "## Explanations of planted objects\n\n`python benchmarks/planted.py`: scripted images of 56 × 56 with one or "
        "two textured objects among flat ones; a ViT of patches of 7, dim 64, 4 layers and 4 heads learns which of six "
        f"textures are there. Explained are {first['num_pairs']} pairs of a held-out image and one of its classes for "
        f"every seed, {100 * _mean(groups, 'shared'):.0f} % of them beside an object of another class; the object is "
        f"{100 * _mean(groups, 'object'):.1f} % of the image. {_how(groups, 'data, training and pairs')}\n\n"
    )
    for group in groups:
        text += f"Read from {POOLED[group.pooling]}, all labels right in {_accuracy(group)} of test images:\n\n"
        text += markdown(rows(group, WHERE)) + "\n" + markdown(depends_rows(group)) + "\n"
    return text + "\n\n".join(filter(None, (verdict(groups), faults(groups), yardstick(groups)))) + "\n"


def pets_text(groups: list[Group]) -> str:
    if not groups:
        return ""
    (group,) = groups
    first = group.jobs[0]
    text = (
        "## Explanations of photographs\n\n`python benchmarks/planted.py --real`: a ViT with the preset small-data "
        "by AdamW, in "
        f"patches of 8, learns 37 breeds of pets at 64 px and names {_accuracy(group)} of test images rightly. "
        f"Explained are {first['num_pairs']} of them for every seed; the mask is the animal, "
        f"{100 * _mean(groups, 'object'):.0f} % of the image, so that a random map has that average precision. "
        f"{_how(groups, 'training and images')}\n\nThe breed that the model says:\n\n"
    )
    text += markdown(rows(group, WHERE)) + "\n" + markdown(depends_rows(group))
    return text + "\nThe true breed:\n\n" + markdown(rows(group, WHERE | DEPENDS, "of_true_class"))


def verdict(groups: list[Group]) -> str:
    """The most precise method within the budget, what the default has, and how far it is from the most precise."""
    ranked = affordable(groups)
    if not ranked:
        return f"No method costs at most {CHEAP:g} forwards."
    best = ranked[0]
    text = (
        f"Of the methods that cost at most {CHEAP:g} forwards, one image or {_largest_batch(groups)} at once, "
        f"{TITLES[best]} has the highest average precision ({_values(groups, best)})"
    )
    if len(ranked) > 1:
        text += f", before {TITLES[ranked[1]]} ({_values(groups, ranked[1])}; {_differences(groups, best, ranked[1])})"
    text += f". The default is {TITLES[DEFAULT]}"
    if DEFAULT not in ranked:
        return text + ", which costs more."
    if DEFAULT == best:
        return text + "."
    text += f": {_values(groups, DEFAULT)}; {_differences(groups, DEFAULT, best)} to the best"
    if not _is_behind(groups, DEFAULT, best):
        text += (
            f", a tie; the energy inside the object is {_values(groups, DEFAULT, 'energy')}, of the other "
            f"{_values(groups, best, 'energy')}, and the mean IoU {_values(groups, DEFAULT, 'mean_iou')}, of the other "
            f"{_values(groups, best, 'mean_iou')}"
        )
    return text + "."


def _is_behind(groups: list[Group], one: str, other: str) -> bool:
    """Clearly, on one of the models at least: the interval of the difference lies below zero."""
    found = [group.difference(one, other, "precision") for group in groups]
    return any(each is None or each.high is None or each.high < 0 for each in found)


def faults(groups: list[Group]) -> str:
    """What the two faults of the published rollouts cost."""
    parts = [
        f"{TITLES[ours]} points at the object in {_values(groups, ours, 'pointing')}, as published in "
        f"{_values(groups, name, 'pointing')} ({_differences(groups, ours, name, 'pointing')})"
        for name, ours in FAULTS.items()
        if all(name in job["methods"] and ours in job["methods"] for group in groups for job in group.jobs)
    ]
    if not parts:
        return ""
    return (
        "As published means with the two faults of a widely used implementation, columns divided by the sums of rows "
        f"and gradients in reverse order, and with its defaults. {'; '.join(parts)}."
    )


def yardstick(groups: list[Group]) -> str:
    """What the mean IoU of the oracle, and of those above it, says about the mean IoU."""
    above = [
        name
        for name in TITLES
        if name != "oracle"
        and all(_number(group, name, "mean_iou") > _number(group, "oracle", "mean_iou") for group in groups)
    ]
    text = f"The mask itself has a mean IoU of {_values(groups, 'oracle', 'mean_iou')} by this threshold"
    return text + (f", less than {', '.join(TITLES[name] for name in above)}." if above else ".")


def _how(groups: list[Group], drawn: str) -> str:
    first, seeds = groups[0].jobs[0], min(len(group.jobs) for group in groups)
    machine = first["machine"]
    return (
        f"Means over {seeds} seed{'s' if seeds > 1 else ''}, which draw {drawn}; ± is half of the 95 % interval over "
        "seeds (Student's t). Deletion and insertion: area under the probability of the class, a "
        "sixteenth of the patches at a time, on a blurred image; positive and negative: share of pairs in which the "
        "class is still predicted, black patches, mean of 10 to 90 %. Sanity: rank correlation with the map of the "
        "same model with shuffled weights. Cost: in plain forwards of the same batch, in turns in one process, CPU "
        f"time of one thread of {machine['processor']}, torch {machine['torch']}, median and quartiles."
    )


def _mean(groups: list[Group], name: str) -> float:
    return statistics.mean(job[name] for group in groups for job in group.jobs)


def _accuracy(group: Group) -> str:
    return f"{100 * statistics.mean(job['accuracy'] for job in group.jobs):.1f} %"


def _largest_batch(groups: list[Group]) -> int:
    return max(int(batch) for batch in groups[0].jobs[0]["cost"])


def _number(group: Group, method: str, metric: str) -> float:
    interval = group.number(method, metric)
    return float("-inf") if interval is None else interval.value


def _values(groups: list[Group], method: str, metric: str = "precision") -> str:
    return _each(groups, [group.number(method, metric) for group in groups])


def _differences(groups: list[Group], one: str, other: str, metric: str = "precision") -> str:
    return f"paired difference {_each(groups, [group.difference(one, other, metric) for group in groups])}"


def _each(groups: list[Group], intervals: list[Interval | None]) -> str:
    return ", ".join(f"{group.pooling} {written(found)}" for group, found in zip(groups, intervals, strict=True))
