"""The area of applicability: are held-out plots like those the model was trained on, and does that tell its errors?"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from safetensors.numpy import load_file

from mirada.report.contents import Contents
from mirada.report.plots_opened import Opened
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import percent
from mirada.tasks.applicability import Applicability
from mirada.tasks.layers import middle_pixel


def area_section(run: Contents, opened: Opened) -> dict:
    """Held-out plots inside and outside, with their errors."""
    area = Applicability.from_arrays(load_file(run.folder.applicability))
    rows = np.array([int(row["row"]) for row in run.predictions])
    name = opened.plots.target_name
    error_N = np.array([float(r[f"predicted_{name}"]) - float(r[f"target_{name}"]) for r in run.predictions])
    index_N = area.index(middle_pixel(opened.layers)[rows])
    inside_N = area.inside(index_N)
    return {
        "threshold": f"{area.threshold:.3g}",
        "share": percent(float(inside_N.mean())),
        "rows": [_row("inside", error_N[inside_N]), _row("outside", error_N[~inside_N])],
        "sentence": _comparison(error_N, inside_N),
        "drawing": area_figure(index_N, np.abs(error_N), area.threshold),
    }


def _row(where: str, error: np.ndarray) -> dict:
    if not len(error):
        return {"where": where, "num": "0", "mae": "–", "rmse": "–"}
    mae, rmse = np.abs(error).mean(), np.sqrt(np.square(error).mean())
    return {"where": where, "num": f"{len(error):,}", "mae": f"{mae:.4g}", "rmse": f"{rmse:.4g}"}


def _comparison(error_N: np.ndarray, inside_N: np.ndarray) -> str:
    if inside_N.all():
        return "No held-out plot lies outside, so these plots cannot say whether errors are larger there."
    if not inside_N.any():
        return "No held-out plot lies inside: the map should be trusted nowhere near these plots."
    ratio = np.abs(error_N[~inside_N]).mean() / max(np.abs(error_N[inside_N]).mean(), 1e-12)
    if ratio > 1:
        return f"The mean error is {ratio:.2g} times as large outside as inside."
    return f"The mean error outside is {ratio:.2g} of that inside: here the area does not tell where errors are large."


def area_figure(index_N: np.ndarray, error_N: np.ndarray, threshold: float) -> Drawing:
    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        alpha = min(0.8, max(0.2, 60 / len(index_N)))
        axes.plot(index_N, error_N, "o", color=theme.model, alpha=alpha, markeredgewidth=0)
        axes.axvline(threshold, color=theme.baseline, linestyle="--", linewidth=1.4, label="threshold")
        axes.set_xlabel("dissimilarity to the training plots")
        axes.set_ylabel("absolute error")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside upper left")

    inside = percent(float((index_N <= threshold).mean()))
    alt = f"Absolute error of held-out plots against their dissimilarity; {inside} lie below the threshold"
    return draw("applicability", f"{alt} {threshold:.3g}.", paint, 4.7, 3.4)
