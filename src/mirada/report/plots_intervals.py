"""Intervals of predictions: what they promise, and what they held on folds that did not calibrate them."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mirada.report.contents import Contents
from mirada.report.plots_validation import Validation
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import percent


def interval_section(validation: Validation, run: Contents) -> dict:
    found = {scheme: validation.summary["schemes"][scheme] for scheme in validation.schemes}
    measured = {scheme: entry["coverage"] for scheme, entry in found.items() if "coverage" in entry}
    return {
        "rows": [_row(scheme, coverage) for scheme, coverage in measured.items()],
        "missing": [f"{scheme} folds: {e['no_intervals']}" for scheme, e in found.items() if "no_intervals" in e],
        "drawing": coverage_figure(measured) if measured else None,
        "own": own_bounds(run.result or {}),
    }


def own_bounds(result: dict) -> str | None:
    """What the head has learned by itself, before any calibration."""
    if result.get("inside_bounds") is None:
        return None
    return (
        f"Without calibration, the {percent(result['bounds'])} intervals that the model itself gives hold "
        f"{percent(result['inside_bounds'])} of the held-out plots; these are the columns low and high of "
        "predictions.csv."
    )


def _row(scheme: str, coverage: dict) -> dict:
    worst = min(coverage["per_fold"].values())
    return {
        "scheme": scheme,
        "promised": percent(coverage["promised"]),
        "blocks": percent(coverage["blocks"]),
        "rows": percent(coverage["rows"]),
        "worst": percent(worst),
        "width": f"± {coverage['half_width']:.4g}",
    }


def coverage_figure(measured: dict[str, dict]) -> Drawing:
    """The share of plots that lay inside: each fold, and the mean over blocks."""
    schemes = list(measured)
    promised = measured[schemes[0]]["promised"]
    lowest = min(min(coverage["per_fold"].values()) for coverage in measured.values())

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        axes.axvline(100 * promised, color=theme.third, linestyle="--", linewidth=1.2, label="promised")
        for place, scheme in enumerate(schemes):
            folds = [100 * share for share in measured[scheme]["per_fold"].values()]
            first = place == 0
            axes.plot(folds, [place] * len(folds), "o", color=theme.third, alpha=0.7, label="a fold" if first else None)
            mean = 100 * measured[scheme]["blocks"]
            axes.plot([mean], [place], "D", color=theme.model, markersize=8, label="mean of blocks" if first else None)
            axes.annotate(
                f"{mean:.1f}", (mean, place), (0, 9), textcoords="offset points", ha="center", color=theme.ink
            )
        axes.set_yticks(range(len(schemes)), [f"{scheme} folds" for scheme in schemes])
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(schemes) - 0.4, -0.75)
        axes.set_xlim(min(100 * lowest, 100 * promised - 5) - 3, 101.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("held-out plots inside their interval, in %")
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        figure.legend(loc="outside upper left", ncols=3)

    said = "; ".join(f"{scheme} folds {percent(c['blocks'])}" for scheme, c in measured.items())
    alt = f"Coverage of intervals that promise {percent(promised)}, mean over blocks: {said}."
    return draw("coverage", alt, paint, 4.9, 1.5 + 0.5 * len(schemes))
