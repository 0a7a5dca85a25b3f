"""What a preset reached, as a comment at its head: written by `python benchmarks/page.py`, never by hand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.curves import DATASETS as TITLES
from benchmarks.small_data import DATASETS
from benchmarks.small_data_table import Group

MARK = "# Measured: "


def with_scores(text: str, preset: str, groups: Sequence[Group]) -> str:
    """The same file with the test accuracies of the preset after its first comments, if there are any."""
    lines = [line for line in text.splitlines() if not line.startswith(MARK)]
    own = [group for group in groups if group.contender == "preset" and DATASETS[group.dataset]["preset"] == preset]
    own = [group for group in own if group.minutes == int(group.minutes)]  # others are a part of somebody's time
    scores = [f"{TITLES[group.dataset]} {group.accuracy} % in {group.minutes:g} minutes" for group in own]
    head = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "\n".join([*lines[:head], *(f"{MARK}{score}" for score in scores), *lines[head:]]) + "\n"
