"""Numbers and results in words."""

from __future__ import annotations

import math

METRIC_TITLES = {
    "accuracy": "Accuracy",
    "f1": "F1",
    "r2": "R²",
    "bits_per_dimension": "Bits per dimension",
    "bleu": "BLEU",
    "chrf": "chrF",
    "perplexity": "Perplexity",
    "ranking": "Neighbours recognised",
    "dice": "Dice",
}
LOWER_IS_BETTER = ("bits_per_dimension", "perplexity")
PERCENT_METRICS = ("accuracy", "ranking")
HUNDRED_METRICS = ("bleu", "chrf")  # whose own scale is 0 to 100
NOUN_OF_INPUTS = {"graph": "node", "plots": "plot", "text": "text", "pairs": "sentence pair"}
NOUN_OF_TASK = {"generate": "line", "embed": "line"}
# What a result was measured on one by one, where that is not what the data was divided by.
ASKED_IN_TASK = {"translate": "sentence", "generate": "passage", "embed": "comparison"}
SAMPLE_OF_TASK = {"generate": "passage", "embed": "word pair"}  # what a training step takes some of


def metric_title(metric: str) -> str:
    return METRIC_TITLES.get(metric, metric.replace("_", " "))


def metric_value(metric: str, value: float | None) -> str:
    """Accuracy in percent, BLEU from 0 to 100, both with one decimal; perplexity 4.52 or 1,283; others 0.913."""
    if value is None or math.isnan(value):
        return "undefined"
    return f"{metric_number(metric, value)} %" if metric in PERCENT_METRICS else metric_number(metric, value)


def metric_number(metric: str, value: float) -> str:
    """As metric_value, without the unit."""
    if metric in PERCENT_METRICS or metric in HUNDRED_METRICS:
        return f"{(100 if metric in PERCENT_METRICS else 1) * value:.1f}".replace("-", "−")
    if metric == "perplexity":
        return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
    return decimal(value)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def decimal(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def interval_text(result: dict) -> str:
    """'89.0–93.2': the unit stands with the value before it."""
    low, high = result["low"], result["high"]
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    ends = [metric_number(result["metric"], end) for end in (low, high)]
    return (" to " if low < 0 else "–").join(ends)


def interval_kind(result: dict) -> str:
    """'Wilson, 95 %' → '95 % Wilson interval', and 'bootstrap' out of whatever says more of it."""
    kind = str(result.get("interval", ""))
    bootstrap = "block bootstrap" if "over blocks" in kind else "bootstrap"
    name = bootstrap if "bootstrap" in kind else kind.split(",")[0].split(" ")[0]
    return f"95 % {name} interval".replace("  ", " ")


def result_sentence(result: dict) -> str:
    """'Accuracy 91.3 % (89.0–93.2, 95 % Wilson interval, 360 held-out images)'"""
    value = f"{metric_title(result['metric'])} {metric_value(result['metric'], result['value'])}"
    return f"{value} ({interval_text(result)}, {interval_kind(result)}, {held_out(result)})"


def held_out(result: dict) -> str:
    task = result.get("task", "")
    asked = ASKED_IN_TASK.get(task) or noun(result.get("inputs"), task)
    return f"{result['n']:,} held-out {asked}{'' if result['n'] == 1 else 's'}"


def noun(inputs: str | None, task: str = "") -> str:
    """What the data of such a run consists of."""
    return NOUN_OF_TASK.get(task) or NOUN_OF_INPUTS.get(inputs or "", "image")


def duration(seconds: float | None) -> str:
    """'3 min 20 s'"""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def shortened(name: str, length: int = 22) -> str:
    """For axes, where a long name would leave no room for the picture."""
    name = " ".join(str(name).split())
    return name if len(name) <= length else name[: length - 1] + "…"
