"""Numbers per image: predicted against true, and what is left over."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.paired import columns
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import decimal, shortened

MAX_DRAWN = 4  # targets


def number_section(run: Contents) -> dict:
    result, names = run.result or {}, run.data["target_names"]
    drawings = []
    if run.predictions:
        target, predicted = (columns(run.predictions, word, names) for word in ("target", "predicted"))
        for number, name in enumerate(names[:MAX_DRAWN]):
            suffix = "" if len(names) == 1 else f"-{number + 1}"
            drawings.append(scatter(f"scatter{suffix}", name, target[:, number], predicted[:, number]))
            drawings.append(residuals(f"residuals{suffix}", name, predicted[:, number] - target[:, number]))
    return {
        "drawings": drawings,
        "not_drawn": names[MAX_DRAWN:],
        "table": [
            {"name": row["name"], "r2": decimal(row["r2"]), "mae": f"{row['mae']:.4g}"}
            for row in result.get("per_target", [])
        ],
    }


def scatter(
    file: str,
    name: str,
    target: np.ndarray,
    predicted: np.ndarray,
    *,
    title: str | None = None,
    nouns: str = "images",
    truth: str = "true",
) -> Drawing:
    ends = [float(min(target.min(), predicted.min())), float(max(target.max(), predicted.max()))]

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        axes.plot(ends, ends, "--", color=theme.third, linewidth=1.2, label="perfect")
        alpha = min(0.8, max(0.15, 60 / len(target)))
        axes.plot(target, predicted, "o", color=theme.model, alpha=alpha, markeredgewidth=0)
        _titled(axes, title or f"Predicted against {truth}: {shortened(name, 28)}")
        unit = f" {shortened(name, 28)}" if title else ""
        axes.set_xlabel(f"{truth}{unit}").set_parse_math(False)
        axes.set_ylabel(f"predicted{unit}").set_parse_math(False)
        axes.legend(loc="upper left")

    r = np.corrcoef(target, predicted)[0, 1] if target.std() > 0 and predicted.std() > 0 else float("nan")
    alt = f"Predicted against {truth} {name} for {len(target):,} {nouns}, correlation {decimal(float(r))}."
    return draw(file, alt, paint, 5.0, 4.2)


def residuals(file: str, name: str, residual: np.ndarray) -> Drawing:
    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        num_bins = int(np.clip(np.sqrt(len(residual)), 5, 40))
        axes.hist(residual, bins=num_bins, color=theme.model, alpha=0.6, edgecolor=theme.paper)
        axes.axvline(0, color=theme.third, linestyle="--", linewidth=1.2)
        _titled(axes, f"Error: {shortened(name, 28)}")
        axes.set_xlabel("predicted − true")
        axes.set_ylabel("images")

    alt = f"Histogram of predicted − true {name}: mean {residual.mean():.3g}, standard deviation {residual.std():.3g}."
    return draw(file, alt, paint, 5.0, 4.2)


def _titled(axes: Axes, title: str) -> None:
    axes.set_title(title).set_parse_math(False)
