"""The result in one sentence, the baseline beside it, and who is ahead."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.style import Drawing, Theme, draw
from mirada.report.verdict import trivial, verdict
from mirada.report.wording import (
    HUNDRED_METRICS,
    LOWER_IS_BETTER,
    PERCENT_METRICS,
    decimal,
    duration,
    interval_text,
    metric_number,
    metric_title,
    metric_value,
    percent,
    result_sentence,
)

TRIVIAL_NAMES = {
    "bits_per_dimension": "frequencies alone",
    "perplexity": "frequencies alone",
    "bleu": "copied source",
    "ranking": "chance",
}


def headline(run: Contents) -> dict:
    """Texts and the comparison table for the top of the page."""
    result, opponent = run.result, run.baseline
    if result is None:
        return {"sentence": None, "steps_done": int(run.metrics[-1]["step"]) if run.metrics else 0}
    answered = opponent is not None and opponent.result is not None
    return {
        "sentence": result_sentence(result),
        "metric": metric_title(result["metric"]),
        "value": metric_value(result["metric"], result["value"]),
        "interval": interval_text(result),
        "baseline": result_sentence(opponent.result) if answered else None,  # type: ignore[union-attr, arg-type]
        "baseline_name": opponent.system if opponent else None,
        "verdict": verdict(run),
        "trivial": trivial(result),
        "is_optimistic": run.held_out == "val",
        "rows": [_row(contents) for contents in (run, opponent) if contents is not None and contents.result]
        + ([_counted_row(result)] if "word_counts" in result else []),
        "drawing": comparison(run),
    }


def comparison(run: Contents) -> Drawing:
    """Value and interval of model, baseline and constant answer on one axis."""
    result = run.result
    assert result is not None
    metric, floor = result["metric"], result["majority"]
    scale = 100 if metric in PERCENT_METRICS else 1
    entries = [(c.system, c.result) for c in (run, run.baseline) if c is not None and c.result is not None]
    if len({name for name, _ in entries}) < len(entries):
        entries = [(f"{name} ({role})", r) for (name, r), role in zip(entries, ("model", "baseline"), strict=True)]
    entries += [("word counts", _counted(result))] if "word_counts" in result else []
    ends = [scale * end for _, entry in entries for end in (entry["low"], entry["high"], entry["value"])]
    known = [end for end in ends if math.isfinite(end)] or [0.0]
    highest = 100 if metric in HUNDRED_METRICS else scale
    room = max(0.25 * (max(known) - min(known)), 0.02 * highest)
    # The intervals fill the axis, however far off the constant answer is; no metric that should be high goes beyond 1.
    most = math.inf if metric in LOWER_IS_BETTER else 1.01 * highest
    trivial_name = TRIVIAL_NAMES.get(metric, "constant answer")
    start, end = min(known) - room, min(max(known) + room, most)

    def colours(theme: Theme) -> tuple[str, ...]:
        return (theme.model, theme.baseline, theme.third)

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for number, ((_, entry), colour) in enumerate(zip(entries, colours(theme), strict=False)):
            value, low, high = (scale * entry[key] for key in ("value", "low", "high"))
            axes.plot([low, high], [number, number], color=colour, linewidth=5, alpha=0.35, solid_capstyle="round")
            axes.plot([value], [number], "o", color=colour, markersize=9)
            text = metric_number(metric, entry["value"])
            axes.annotate(text, (value, number), (0, 9), textcoords="offset points", ha="center", color=theme.ink)
        axes.set_xlim(start, end)
        if start <= scale * floor <= end:
            axes.plot([scale * floor], [len(entries)], "D", color=theme.third, markersize=7)
        elif scale * floor > end:
            text = f"{metric_number(metric, floor)} ▸"
            axes.text(end, len(entries), text, color=theme.third, va="center", ha="right")
        else:
            text = f"◂ {metric_number(metric, floor)}"
            axes.text(start + 0.01 * (end - start), len(entries), text, color=theme.third, va="center")
        axes.set_yticks(range(len(entries) + 1), [*(name for name, _ in entries), trivial_name])
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(entries) + 0.6, -0.75)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{metric_title(metric)}{' in %' if scale == 100 else ''}, with 95 % interval")

    alt = "; ".join(f"{name}: {result_sentence(entry)}" for name, entry in entries)
    height = 2.2 + 0.4 * max(0, len(entries) - 2)
    return draw("comparison", f"{alt}; {trivial_name}: {metric_value(metric, floor)}", paint, 4.7, height)


def _row(run: Contents) -> dict:
    result = run.result or {}
    shown = {
        "accuracy": [("Macro F1", decimal(result.get("macro_f1"))), ("ECE", decimal(result.get("ece")))],
        "f1": [
            ("Macro F1", decimal(result.get("macro_f1"))),
            ("Mean AP", decimal(result.get("mean_average_precision"))),
            ("Exact match", percent(result.get("exact_match", 0.0))),
        ],
        "r2": [(word.upper(), f"{result[word]:.4g}") for word in ("mae", "rmse") if word in result],
        "bits_per_dimension": [("Probe", percent(result["probe_accuracy"]))] if "probe_accuracy" in result else [],
        "bleu": _some(result, "chrf", "perplexity"),
        "perplexity": _some(result, "bits_per_character", "token_accuracy"),
        "ranking": [],
        "dice": [("IoU", decimal(result.get("iou"))), ("Boundary F1", decimal(result.get("boundary_f1")))],
    }[result["metric"]]
    size = result.get("size") or (run.model or {}).get("size")
    return {
        "name": f"{run.system} {size or ''}".strip(),
        "value": f"{metric_value(result['metric'], result['value'])} ({interval_text(result)})",
        "others": [*shown, ("Loss", decimal(result.get("loss")))],
        "parameters": f"{result['num_parameters']:,}" if "num_parameters" in result else "–",
        "time": duration(result.get("seconds_training")),
        "samples_seen": f"{result['samples_seen']:,}" if "samples_seen" in result else "–",
        "per_image": duration(result.get("seconds_per_image")),
    }


def _counted(result: dict) -> dict:
    """What a linear model of word counts reached on the same texts, in the form of a result."""
    counted = result["word_counts"]
    return {**result, "value": counted["accuracy"], "low": counted["low"], "high": counted["high"]}


def _counted_row(result: dict) -> dict:
    counted = _counted(result)
    value = f"{metric_value('accuracy', counted['value'])} ({interval_text(counted)})"
    missing = dict.fromkeys(("parameters", "time", "samples_seen"), "–")
    others = [(name, "–") for name in ("Macro F1", "ECE", "Loss")]
    return {"name": "linear model of word counts", "value": value, "others": others, **missing}


def _some(result: dict, *names: str) -> list[tuple[str, str]]:
    """Other numbers of a result on text, those that it has."""
    titles = {"bits_per_character": "Bits per character", "token_accuracy": "Tokens right"}
    return [
        (titles.get(name, metric_title(name)), percent(v) if name == "token_accuracy" else metric_value(name, v))
        for name in names
        if (v := result.get(name)) is not None
    ]
