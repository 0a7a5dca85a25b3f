"""Several ways to hold out plots side by side: a table, a figure, and what the gap between them says."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.plots_validation import OURS, Validation, gap_interval, title_of
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import decimal, interval_text, signed

SHORT = {"knn": "kNN on coordinates", "gradient_boosting": "gradient boosting"}
LOWEST_DRAWN = -1.0  # of R², lest one bad model leaves no room for the others
COLUMNS = ("r", "mae", "rmse", "rae", "rse")
MEANING = {
    "random": "Random folds put neighbours on both sides: they say how well gaps between plots are filled.",
    "blocked": "Blocked folds hold out whole blocks of land: they say how well the model does where nobody has been.",
    "buffered": "Buffered folds also leave out the training plots near those blocks.",
}


def score_table(validation: Validation, run: Contents) -> list[dict]:
    """A group for each scheme, with a row for each model."""
    return [
        {
            "scheme": scheme,
            "folds": validation.summary["schemes"][scheme]["folds"],
            "n": validation.summary["schemes"][scheme]["n"],
            "rows": [_score_row(name, entry, run) for name, entry in validation.models(scheme).items()],
        }
        for scheme in validation.schemes
    ]


def _score_row(name: str, entry: dict, run: Contents) -> dict:
    low, high = entry["intervals"]["r2"]
    interval = interval_text({"metric": "r2", "low": low, "high": high})
    shown = {key: decimal(entry["scores"][key]) for key in ("r", "rae", "rse")}
    shown |= {key: f"{entry['scores'][key]:.4g}" for key in ("mae", "rmse")}
    return {
        "name": title_of(name, run),
        "is_ours": name == OURS,
        "r2": f"{decimal(entry['scores']['r2'])} ({interval})",
        "others": [shown[key] for key in COLUMNS],
    }


def gap_sentence(validation: Validation, run: Contents) -> str:
    """What near plots do for the result."""
    far = validation.trusted
    if "random" not in validation.schemes or far == "random":
        return "Only one kind of folds was tried, so nothing says how much training plots near by would help."
    near_r2, far_r2 = validation.r2("random"), validation.r2(far)
    said = f"R² of the {run.system} is {decimal(near_r2)} on random folds and {decimal(far_r2)} on {far} ones"
    gap = validation.difference(("random", OURS), (far, OURS))
    if gap is None:
        return f"{said}."
    told = f"{said} (difference {signed(near_r2 - far_r2)}, {gap_interval(gap)})"
    if gap.low > 0:
        return (
            f"{told}: so much of the first is owed to training plots near by. A map is also asked of places that have "
            f"none, so expect the second there."
        )
    if gap.high < 0:
        return f"{told}: near plots do not help this model, which is unusual and worth a look at the folds."
    return f"{told}: these blocks cannot tell whether training plots near by help it."


def score_figure(validation: Validation, run: Contents) -> Drawing:
    """R² with its interval: a panel for each scheme, a line for each model."""
    schemes, names = validation.schemes, list(validation.models(validation.schemes[0]))
    ends = [end for scheme in schemes for entry in validation.models(scheme).values() for end in _ends(entry)]
    known = [end for end in ends if np.isfinite(end)] or [0.0]
    start, stop = max(min(known), LOWEST_DRAWN) - 0.05, min(max(known) + 0.05, 1.02)

    def paint(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(1, len(schemes), sharey=True, squeeze=False)[0]
        for axes, scheme in zip(panels, schemes, strict=True):
            for place, name in enumerate(names):
                value, low, high = _ends(validation.models(scheme)[name])
                colour = theme.model if name == OURS else theme.third
                axes.plot([low, high], [place, place], color=colour, linewidth=5, alpha=0.4, solid_capstyle="round")
                axes.plot([value], [place], "o", color=colour, markersize=8)
                if np.isfinite(value):
                    text, at = (decimal(value), value) if value >= start else (f"◂ {decimal(value)}", start)
                    axes.annotate(
                        text,
                        (min(max(at, start + 0.08 * (stop - start)), stop - 0.08 * (stop - start)), place),
                        (0, 8),
                        textcoords="offset points",
                        ha="center",
                        fontsize=8.5,
                        color=theme.ink,
                    )
            axes.axvline(0, color=theme.third, linewidth=1, linestyle="--")
            axes.set_title(f"{scheme} folds")
            axes.set_xlabel("R²")
            axes.set_xlim(start, stop)
            axes.set_yticks(range(len(names)), [SHORT.get(name, title_of(name, run)) for name in names])
            axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
            axes.set_ylim(len(names) - 0.5, -0.75)
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)

    said = [
        f"{scheme}: " + ", ".join(f"{title_of(name, run)} {decimal(validation.r2(scheme, name))}" for name in names)
        for scheme in schemes
    ]
    width = min(9.6, 2.6 + 2.4 * len(schemes))
    return draw("schemes", f"R² by folds. {'; '.join(said)}.", paint, width, 1.1 + 0.5 * len(names))


def _ends(entry: dict) -> tuple[float, float, float]:
    return entry["scores"]["r2"], *entry["intervals"]["r2"]
