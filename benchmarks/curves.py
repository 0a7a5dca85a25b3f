"""Accuracy against training time, one picture per data set, from the results of benchmarks/small_data.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.small_data_table import Group
from mirada.report.style import LIGHT

DATASETS = {
    "cifar10": "CIFAR-10",
    "fashion": "Fashion-MNIST",
    "pets": "Pets, 37 breeds at 64 px",
    "photos": "Pets, 37 breeds at 128 px",
}
# Most are told apart with any kind of colour vision (Okabe and Ito 2008), and all by their names at the lines.
CONTENDERS = {
    "preset": ("Mirada's preset", "#0072b2"),
    "preset-adamw": ("Mirada's preset, AdamW", "#a84d86"),
    "tutorial": ("ViT, tutorial recipe", "#d55e00"),
    "cct": ("CCT-2/3×2", "#6a3d9a"),
    "cnn-micro": ("CNN, micro", "#1c2430"),
    "cnn-micro-adamw": ("CNN, micro, AdamW", "#8a6d00"),
    "cnn-mini-adamw": ("CNN, mini, AdamW", "#009e73"),
}
OTHER_COLOUR = "#1c2430"
MINUTES = (0.5, 1, 2, 5, 10, 20, 60)
LEAST_GAP = 0.052  # between two labels, as a share of the height
SETTINGS = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT.line,
    "axes.labelcolor": LIGHT.faint,
    "text.color": LIGHT.ink,
    "xtick.color": LIGHT.line,
    "ytick.color": LIGHT.line,
    "xtick.labelcolor": LIGHT.faint,
    "ytick.labelcolor": LIGHT.faint,
    "svg.hashsalt": "mirada",  # the same results make the same file
}


def draw_all(groups: list[Group], folder: Path) -> dict[str, tuple[Path, str]]:
    """{data set: (picture, what can be read from it)}; a panel per budget, a line per contender."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for dataset in dict.fromkeys(group.dataset for group in groups):
        chosen = [group for group in groups if group.dataset == dataset]
        path = folder / f"accuracy-{dataset}.svg"
        with mpl.rc_context(SETTINGS):
            FigureCanvasSVG(_figure(dataset, chosen)).print_svg(path, metadata={"Date": None})
        pictures[dataset] = (path, _reading(dataset, chosen))
    return pictures


def draw_together(dataset: str, groups: list[Group], folder: Path) -> tuple[Path, str]:
    """One panel with trainings of different length, and what can be read from it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"time-to-accuracy-{dataset}.svg"
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7.2, 3.7), layout="constrained", facecolor=LIGHT.paper)
        panel = figure.subplots()
        _paint(panel, groups)
        _label(panel, groups, with_minutes=True)
        panel.set_title(title(dataset))
        panel.set_ylabel("validation accuracy in %")
        FigureCanvasSVG(figure).print_svg(path, metadata={"Date": None})
    return path, _reading(dataset, groups)


def curve(group: Group) -> tuple[np.ndarray, np.ndarray]:
    """Minutes (P,) and validation accuracies in % (seeds, P); seeds of one recipe are evaluated at the same steps."""
    points = min(len(job["curve"]) for job in group.jobs)
    values = np.array([job["curve"][:points] for job in group.jobs], dtype=float)
    return values[:, :, 0].mean(0) / 60, 100 * values[:, :, 1]


def title(dataset: str) -> str:
    return DATASETS.get(dataset, dataset)


def _figure(dataset: str, groups: list[Group]) -> Figure:
    budgets = sorted({group.minutes for group in groups})
    figure = Figure(figsize=(4.6 * len(budgets) + 0.4, 3.7), layout="constrained", facecolor=LIGHT.paper)
    panels = figure.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
    for panel, minutes in zip(panels, budgets, strict=True):
        _paint(panel, [group for group in groups if group.minutes == minutes])
        panel.set_title(f"{title(dataset)}, {minutes:g} minutes")
    # Labels are placed when all panels have decided on the common range.
    for panel, minutes in zip(panels, budgets, strict=True):
        _label(panel, [group for group in groups if group.minutes == minutes])
    panels[0].set_ylabel("validation accuracy in %")
    return figure


def _paint(panel: Axes, groups: list[Group]) -> None:
    for group in groups:
        minutes, accuracy = curve(group)
        colour = _look(group)[1]
        panel.plot(minutes, accuracy.mean(0), "o-", color=colour, linewidth=1.8, markersize=3)
        panel.fill_between(minutes, accuracy.min(0), accuracy.max(0), color=colour, alpha=0.18, linewidth=0)
    panel.set_xscale("log")
    first, last = panel.get_xlim()
    panel.xaxis.set_major_locator(FixedLocator([tick for tick in MINUTES if first <= tick <= last]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlabel("minutes of training on two cores")
    panel.grid(True, color=LIGHT.line, linewidth=0.7)
    panel.set_axisbelow(True)


def _label(panel: Axes, groups: list[Group], *, with_minutes: bool = False) -> None:
    """The name of each line at its end, moved apart where ends are close."""
    low, high = panel.get_ylim()
    ends = sorted(
        ((curve(group)[1][:, -1].mean() - low) / (high - low), _look(group), group.minutes) for group in groups
    )
    heights = _apart([height for height, _, _ in ends])
    for height, (_, (name, colour), minutes) in zip(heights, ends, strict=True):
        panel.annotate(
            f"{name}, {minutes:.3g} min" if with_minutes else name,
            (1, height),
            (6, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            va="center",
            annotation_clip=False,
        )
    panel.set_xlim(right=max(curve(group)[0][-1] for group in groups) * 1.04)


def _apart(heights: list[float]) -> list[float]:
    """Rising heights in 0..1, at least LEAST_GAP apart: clusters are spread around their own centre."""
    clusters: list[list[float]] = []
    for height in heights:
        clusters.append([height])
        while len(clusters) > 1 and _spread(clusters[-2])[-1] + LEAST_GAP > _spread(clusters[-1])[0]:
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    return [height for cluster in clusters for height in _spread(cluster)]


def _spread(cluster: list[float]) -> list[float]:
    centre, count = sum(cluster) / len(cluster), len(cluster)
    return [centre + LEAST_GAP * (number - (count - 1) / 2) for number in range(count)]


def _look(group: Group) -> tuple[str, str]:
    return CONTENDERS.get(group.contender, (group.contender, OTHER_COLOUR))


def _reading(dataset: str, groups: list[Group]) -> str:
    said = "; ".join(
        f"{_look(group)[0]} {curve(group)[1][:, -1].mean():.1f} % after {group.minutes:.3g} minutes" for group in groups
    )
    return f"Validation accuracy on {title(dataset)} against minutes of training: {said}."
