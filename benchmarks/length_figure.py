"""The results of benchmarks/length.py in a sentence and in a picture."""

from __future__ import annotations

import statistics
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from benchmarks.jobs import read_lines
from mirada.report.style import Theme, draw

TITLES = {"attention": "GRU with attention", "no attention": "GRU without attention"}
SHORT, LONG = "6", "30"  # the lengths that the sentence is about
MEASURES = {"letters_right": "letters right", "rows_right": "whole rows right"}


def mean_by_length(jobs: list[dict], contender: str, measure: str) -> dict[str, float]:
    own = [job[measure] for job in jobs if job["contender"] == contender]
    return {length: statistics.mean(each[length] for each in own) for length in own[0]} if own else {}


def finding(jobs: list[dict]) -> str:
    said = []
    for contender, title in TITLES.items():
        letters, rows = (mean_by_length(jobs, contender, measure) for measure in MEASURES)
        if letters:
            short, long = (
                f"{100 * letters[n]:.1f} % of the letters ({100 * rows[n]:.1f} % of the rows)" for n in (SHORT, LONG)
            )
            said.append(f"{title}: {short} right at {SHORT} letters, {long} at {LONG}.")
    return " ".join(said)


def draw_file(results_file: Path, images: Path) -> tuple[Path, str] | None:
    """(picture, what can be read from it), if there are results."""
    jobs = read_lines(results_file)
    if not jobs:
        return None

    def paint(figure: Figure, theme: Theme) -> None:
        for axes, (measure, title) in zip(figure.subplots(1, 2, sharey=True), MEASURES.items(), strict=True):
            for contender, colour, mark in (("attention", theme.model, "o"), ("no attention", theme.baseline, "s")):
                for seed in [job[measure] for job in jobs if job["contender"] == contender]:
                    axes.plot([int(n) for n in seed], list(seed.values()), color=colour, linewidth=0.8, alpha=0.4)
                mean = mean_by_length(jobs, contender, measure)
                axes.plot(
                    [int(n) for n in mean], list(mean.values()), f"{mark}-", color=colour, label=TITLES[contender]
                )
            axes.set_title(title)
            axes.set_xlabel("letters in a row")
            axes.yaxis.set_major_formatter(PercentFormatter(1))
            axes.set_ylim(-0.03, 1.03)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    drawing = draw("length", f"Reversing rows of letters, by length. {finding(jobs)}", paint, 7.6, 3.4)
    images.mkdir(parents=True, exist_ok=True)
    (images / "length.png").write_bytes(drawing.light)
    return images / "length.png", drawing.alt
