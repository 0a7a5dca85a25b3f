"""The section on maps of docs/measured.md."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from benchmarks.jobs import read_lines
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


def maps_verdict(results: Path) -> str:
    """Where the blocked R² is below that of the best simple model, said in words."""
    behind = []
    for (name, scheme), entries in sorted(groups(results / "maps.jsonl").items()):
        means = {m: statistics.mean(entry["models"][m]["scores"]["r2"] for entry in entries) for m in TITLES}
        best = max((m for m in TITLES if m != "model"), key=lambda m: means[m])
        if scheme == "blocked" and round(means["model"], 2) < round(means[best], 2):
            behind.append(f"{NAMES[name]} ({means['model']:.2f} against {means[best]:.2f} of {TITLES[best]})")
    if not behind:
        return "\nOn blocks it is at least as good as the best of the three simple models on all data sets.\n"
    return f"\nOn blocks it falls short of the best simple model on: {'; '.join(behind)}. Use that one there.\n"


def maps_text(seeds: int) -> str:
    return (
        "## Maps\n\n"
        f"`python benchmarks/maps.py`: R² of predictions for plots that were held out, five folds, {seeds} seeds, "
        "which also draw the folds; in brackets the 95 % interval over blocks; both are means over the seeds. The "
        "blocked figure is the one that counts where a map goes beyond its plots. The last column is the share of "
        "held-out plots inside the Spatioformer's intervals, calibrated on other folds. The preset and the settings of "
        "the baselines were chosen on these three data sets, so expect a little less of all of them on yours.\n\n"
    )


def speed_rows(results: Path) -> tuple[list[str], list[list[str]]]:
    path = results / "map_speed.json"
    found = json.loads(path.read_text())["systems"] if path.exists() else {}
    rows = [
        [
            *(f"`{name}`", f"{row['shared']:,.0f}", f"{row['chips']:,.0f}"),
            *(f"{row['ratio']:.1f} ({row['low']:.1f}–{row['high']:.1f})", f"{row['difference']:.0e}"),
        ]
        for name, row in found.items()
    ]
    return ["system", "pixels/s", "pixels/s, chip by chip", "ratio", "largest difference"], rows


SPEED_TEXT = (
    "## Speed of a map\n\n`python benchmarks/map_speed.py`: all pixels of a patch at once, as `mirada map` does, "
    "against a chip of 9 × 9 pixels cut for every pixel and called in batches. Six bands, one thread, random weights, "
    "in turns in one process; medians and quartiles.\n\n"
)

MEMORY_COLUMNS = {
    "system": "model",
    "pixels with data": "pixels with data",
    "tiles without data": "tiles without data",
    "seconds of predicting": "predicting, s",
    "MB before": "MB before",
    "MB, earlier half": "earlier half",
    "MB, later half": "later half",
    "seconds of the COG": "COG, s",
    "MB, writing the COG": "MB, COG",
    "MB, previews": "MB, previews",
}
MEMORY_TEXT = (
    "## Memory of a map\n\n`python benchmarks/map_memory.py [--system spatioformer]`: a raster of 20,000 × 20,000 "
    "pixels and 6 bands, most of it without data, on two threads. Resident megabytes of the whole process, libraries "
    "included: largest of the earlier and of the later half of predicting, and of what follows. The convolution stands "
    "for a model that costs nothing.\n\n"
)


def memory_rows(results: Path) -> tuple[list[str], list[list[str]]]:
    """The latest measurement of each model."""
    found = {line["system"]: line for line in read_lines(results / "map_memory.jsonl")}
    rows = [[_written(line[name]) for name in MEMORY_COLUMNS] for line in found.values()]
    return list(MEMORY_COLUMNS.values()), rows


def _written(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"
