"""One of C classes per image: confusion matrix, precision and recall per class, calibration."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import decimal, noun, percent, shortened

MAX_COUNTS_SHOWN = 15  # classes up to which cells carry their numbers
MAX_NAMES_SHOWN = 60
NUM_PAIRS = 10


def class_section(run: Contents) -> dict:
    result = run.result or {}
    return {
        "confusion": confusion_matrix(run) if result.get("confusion") else None,
        "pairs": confused_pairs(run),
        "reliability": reliability(result) if result.get("calibration") else None,
        "ece": decimal(result.get("ece")),
        "confidence": confidence_sentence(result) if result.get("calibration") else "",
        "table": class_table(result),
        "macro": [
            (name, percent(result[key]))
            for key, name in (
                ("balanced_accuracy", "Balanced accuracy"),
                ("macro_precision", "Macro precision"),
                ("macro_recall", "Macro recall"),
                ("macro_f1", "Macro F1"),
                ("top5", "Top-5 accuracy"),
            )
            if key in result
        ],
    }


def class_table(result: dict) -> list[dict]:
    """Shares of 0..1 become percent; `bar` draws the F1 behind its number."""
    return [
        {
            "name": row["name"],
            "support": f"{row['support']:,}",
            "bar": round(100 * row["f1"], 1),
            **{key: f"{100 * row[key]:.1f}" for key in ("precision", "recall", "f1")},
            "average_precision": decimal(row.get("average_precision")),
        }
        for row in result.get("per_class", [])
    ]


def confusion_matrix(run: Contents) -> Drawing:
    """Shares of each row, so that rare classes are as visible as frequent ones."""
    counts = np.array((run.result or {})["confusion"])
    names = [shortened(name) for name in run.data["class_names"]]
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    num = len(names)
    longest = max(map(len, names))

    def paint(figure: Figure, theme: Theme) -> None:
        figure.set_layout_engine("compressed")  # square cells leave gaps that the usual layout does not close
        axes = figure.subplots()
        image = axes.imshow(shares, cmap=theme.heat_map, vmin=0, vmax=1, interpolation="nearest")
        if num <= MAX_COUNTS_SHOWN:
            for row, column in np.argwhere(counts):
                colour = theme.paper if shares[row, column] > 0.5 else theme.ink
                axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=colour, fontsize=8.5)
        if num <= MAX_NAMES_SHOWN:
            small = 9 if num <= 20 else max(4.5, 260 / num)
            axes.set_xticks(range(num), names, fontsize=small, rotation=90 if longest > 2 else 0)
            axes.set_yticks(range(num), names, fontsize=small)
            plain_labels([*axes.get_xticklabels(), *axes.get_yticklabels()])
        axes.grid(visible=False)
        axes.tick_params(length=0, labelcolor=theme.ink)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, format=lambda v, _: f"{100 * v:.0f} %")
        bar.outline.set_visible(False)

    alt = f"Confusion matrix of {num} classes: {percent(np.trace(counts) / max(counts.sum(), 1))} on the diagonal."
    side = 5.0 if num <= 20 else 8.4
    return draw("confusion", alt, paint, side, side * 0.9)


def confused_pairs(run: Contents) -> list[dict]:
    """The largest entries off the diagonal."""
    counts = np.array((run.result or {}).get("confusion", []))
    if counts.size == 0:
        return []
    names, totals = run.data["class_names"], counts.sum(1)
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None, kind="stable")[:NUM_PAIRS]
    places = [divmod(int(place), len(names)) for place in order]
    return [
        {
            "target": names[row],
            "predicted": names[column],
            "count": int(off[row, column]),
            "share": percent(off[row, column] / totals[row]),
        }
        for row, column in places
        if off[row, column] > 0
    ]


def confidence_sentence(result: dict) -> str:
    """Mean confidence against the share that is right."""
    bins = result["calibration"]
    mean = sum(bin["confidence"] * bin["count"] for bin in bins) / sum(bin["count"] for bin in bins)
    gap = mean - result["accuracy"]
    judged = "about as sure as it should be" if abs(gap) < 0.02 else "too sure of itself" if gap > 0 else "too modest"
    return (
        f"On average it is {percent(mean)} sure and {percent(result['accuracy'])} of its answers are right: {judged}."
    )


def reliability(result: dict) -> Drawing:
    """Accuracy against confidence in ten bins; a calibrated model lies on the diagonal."""
    bins = result["calibration"]
    lefts = [min(int(10 * bin["confidence"]), 9) / 10 for bin in bins]

    def paint(figure: Figure, theme: Theme) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        upper.plot([0, 1], [0, 1], "--", color=theme.third, linewidth=1.2)
        upper.bar(lefts, [bin["accuracy"] for bin in bins], 0.092, align="edge", color=theme.model, alpha=0.35)
        upper.plot([b["confidence"] for b in bins], [b["accuracy"] for b in bins], "o-", color=theme.model)
        upper.set_ylabel("share that is right")
        upper.set_ylim(0, 1.03)
        upper.set_title(f"Expected calibration error {result['ece']:.3f}")
        lower.bar(lefts, [bin["count"] for bin in bins], 0.092, align="edge", color=theme.third)
        lower.set_xlim(0, 1)
        lower.set_ylabel(f"{noun(result.get('inputs'))}s")
        lower.set_xlabel("confidence of the answer")

    said = ", ".join(f"{b['confidence']:.2f} → {b['accuracy']:.2f}" for b in bins)
    alt = f"Reliability diagram, expected calibration error {result['ece']:.3f}; confidence → accuracy: {said}."
    return draw("reliability", alt, paint, 5.0, 4.5)
