"""The section on maps of docs/measured.md."""

from __future__ import annotations

from pathlib import Path

from benchmarks.maps import coverage_text, groups, r2_text

TITLES = {
    "model": "Spatioformer",
    "knn": "nearest plots",
    "random_forest": "random forest",
    "gradient_boosting": "gradient boosting",
}
NAMES = {
    "nz": "New Zealand, richness of plants, 6,000 plots, blocks of 100 km",
    "south-america": "South America, richness of plants, 703 plots, blocks of 3°",
    "air": "Air temperature, 3,076 stations, blocks of 10°",
}


def maps_rows(results: Path) -> tuple[list[str], list[list[str]], int]:
    """(head, rows, seeds) of the table; no rows where nothing is measured."""
    found = groups(results / "maps.jsonl")
    rows = [
        [NAMES[name], scheme, *(r2_text(entries, model) for model in TITLES), coverage_text(entries)]
        for (name, scheme), entries in sorted(found.items())
    ]
    seeds = min((len(entries) for entries in found.values()), default=0)
    return ["data", "folds", *TITLES.values(), "90 % intervals hold"], rows, seeds


def maps_text(seeds: int) -> str:
    return (
        "## Maps\n\n"
        f"`python benchmarks/maps.py`: R² of predictions for plots that were held out, five folds, {seeds} seeds, "
        "which also draw the folds; in brackets the 95 % interval over blocks; both are means over the seeds. The "
        "blocked figure is the one that counts where a map goes beyond its plots. The last column is the share of "
        "held-out plots inside the Spatioformer's intervals, calibrated on other folds.\n\n"
    )
