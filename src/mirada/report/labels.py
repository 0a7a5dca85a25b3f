"""Any number of labels per image: how well each label is found."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mirada.report.classes import class_table
from mirada.report.contents import Contents
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import decimal, percent, shortened

MAX_LABELS_DRAWN = 40


def label_section(run: Contents) -> dict:
    result = run.result or {}
    numbers = [
        ("Macro F1", decimal(result.get("macro_f1"))),
        ("Mean AP", decimal(result.get("mean_average_precision"))),
    ]
    if "exact_match" in result:
        numbers.append(("All labels right", percent(result["exact_match"])))
    return {
        "drawing": label_bars(result) if result.get("per_class") else None,
        "table": class_table(result),
        "macro": numbers,
    }


def label_bars(result: dict) -> Drawing:
    """Average precision and F1 of each label, the best first."""
    rows = sorted(result["per_class"], key=lambda row: -(row.get("average_precision") or 0.0))[:MAX_LABELS_DRAWN]
    precisions = [row.get("average_precision") or 0.0 for row in rows]

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        places = np.arange(len(rows))
        axes.barh(places, precisions, 0.62, color=theme.model, alpha=0.55, label="average precision")
        axes.plot([row["f1"] for row in rows], places, "D", color=theme.baseline, label="F1 at threshold 0.5")
        axes.set_yticks(places, [shortened(row["name"]) for row in rows])
        plain_labels(axes.get_yticklabels())
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.02)
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=2)

    best, worst = rows[0], rows[-1]
    ends = f"from {precisions[0]:.2f} ({best['name']}) to {precisions[-1]:.2f} ({worst['name']})"
    alt = f"Average precision per label, {ends}."
    return draw("labels", alt, paint, 5.8, 1.3 + 0.3 * len(rows))
