"""Numbers and results in words."""

from __future__ import annotations

import math

METRIC_TITLES = {"accuracy": "Accuracy", "f1": "F1", "r2": "R²", "bits_per_dimension": "Bits per dimension"}
LOWER_IS_BETTER = ("bits_per_dimension",)
PERCENT_METRICS = ("accuracy",)


def metric_title(metric: str) -> str:
    return METRIC_TITLES.get(metric, metric.replace("_", " "))


def metric_value(metric: str, value: float | None) -> str:
    """Accuracy in percent with one decimal, everything else with three."""
    if value is None or math.isnan(value):
        return "undefined"
    return percent(value) if metric in PERCENT_METRICS else decimal(value)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def decimal(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}".replace("-", "−")


def interval_text(result: dict) -> str:
    """'89.0–93.2': the unit stands with the value before it."""
    low, high = result["low"], result["high"]
    if math.isnan(low) or math.isnan(high):
        return "no interval"
    scale, digits = (100, 1) if result["metric"] in PERCENT_METRICS else (1, 3)
    ends = [f"{scale * end:.{digits}f}".replace("-", "−") for end in (low, high)]
    return (" to " if low < 0 else "–").join(ends)


def interval_kind(result: dict) -> str:
    """'Wilson, 95 %' → '95 % Wilson interval'."""
    return f"95 % {str(result.get('interval', '')).split(',')[0].split(' ')[0]} interval".replace("  ", " ")


def result_sentence(result: dict) -> str:
    """'Accuracy 91.3 % (89.0–93.2, 95 % Wilson interval, 360 held-out images)'"""
    value = f"{metric_title(result['metric'])} {metric_value(result['metric'], result['value'])}"
    return f"{value} ({interval_text(result)}, {interval_kind(result)}, {held_out(result)})"


def held_out(result: dict) -> str:
    return f"{result['n']:,} held-out {noun(result.get('inputs'))}{'' if result['n'] == 1 else 's'}"


def noun(inputs: str | None) -> str:
    """What a system of these inputs is asked about, one by one."""
    return "node" if inputs == "graph" else "image"


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
