"""The result in one sentence, the baseline beside it, and who is ahead."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.paired import Difference, Mcnemar, compare
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import (
    LOWER_IS_BETTER,
    PERCENT_METRICS,
    decimal,
    duration,
    interval_text,
    metric_title,
    metric_value,
    p_value,
    percent,
    result_sentence,
)

CONVOLUTIONAL = ("cnn", "resnet")
EDGELESS = "mlp"  # of graphs: it sees the features of a node and no other node
TRIVIAL = {
    "accuracy": "Always answering the most frequent class",
    "f1": "Always answering the labels that most images have",
    "r2": "Always answering the mean",
    "bits_per_dimension": "Knowing only how frequent each colour is",
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
        "rows": [_row(contents) for contents in (run, opponent) if contents is not None and contents.result],
        "drawing": comparison(run),
    }


def verdict(run: Contents) -> str:
    """Who is ahead, and whether what was held out is enough to say so."""
    result, opponent = run.result, run.baseline
    assert result is not None
    if run.inputs == "pixels":
        return probe(result)
    if opponent is None:
        return "No baseline was trained, so nothing says whether a simpler model would do as well."
    if opponent.result is None:
        return f"The baseline {opponent.system} was not finished; `mirada resume` completes it."
    metric, gap = result["metric"], result["value"] - opponent.result["value"]
    ours, theirs = _names(run)
    test = compare(run)
    evidence = _evidence(test, ours, theirs, run.nouns)
    without_edges = opponent.system == EDGELESS and run.system != EDGELESS
    clear = test is not None and test.is_clear
    if not clear:
        lead = "Both score the same" if gap == 0 else f"The {ours if gap > 0 else theirs} is {_gap(metric, gap)} ahead"
        unsaid = " Nothing says that the edges help." if without_edges else ""
        return f"{lead}, but these {run.nouns} cannot tell the two apart{evidence}.{unsaid}"
    if gap > 0:
        said = " The baseline sees no edges, so the graph helps." if without_edges else ""
        return f"The {ours} is {_gap(metric, gap)} ahead of the {theirs}, and that is clear{evidence}.{said}"
    winner = "A CNN" if opponent.system in CONVOLUTIONAL else "The baseline"
    winner = "A model without edges" if without_edges else winner
    lead = f"the {theirs} is {_gap(metric, gap)} ahead, and that is clear{evidence}"
    return f"{winner} does better on this data: {lead}."


def trivial(result: dict) -> str:
    """What no learning at all would reach, and whether the model is above it."""
    metric, floor = result["metric"], result["majority"]
    sentence = f"{TRIVIAL.get(metric, 'A constant answer')} gives {metric_value(metric, floor)}"
    is_better = result["high"] < floor if metric in LOWER_IS_BETTER else result["low"] > floor
    if is_better:
        return f"{sentence}."
    return f"{sentence}: the model is not clearly better than that."


def probe(result: dict) -> str:
    """What a model of pixels knows of the classes that nobody told it."""
    if "probe_accuracy" not in result:
        return "Fewer bits are better: the model finds the images less surprising."
    shares = [percent(result[name]) for name in ("probe_accuracy", "probe_majority")]
    return (
        f"A linear classifier on the features of its middle layer is right for {shares[0]} of held-out images, though "
        f"no label was used to learn them; the most frequent class is {shares[1]}."
    )


def comparison(run: Contents) -> Drawing:
    """Value and interval of model, baseline and constant answer on one axis."""
    result = run.result
    assert result is not None
    metric, floor = result["metric"], result["majority"]
    scale = 100 if metric in PERCENT_METRICS else 1
    entries = [(contents.system, contents.result) for contents in (run, run.baseline) if contents and contents.result]
    if len({name for name, _ in entries}) < len(entries):
        entries = [(f"{name} ({role})", r) for (name, r), role in zip(entries, ("model", "baseline"), strict=True)]
    ends = [scale * end for _, entry in entries for end in (entry["low"], entry["high"], entry["value"])]
    known = [end for end in ends if math.isfinite(end)] or [0.0]
    room = max(0.25 * (max(known) - min(known)), 0.02 * scale)
    # The intervals fill the axis, however far off the constant answer is; no metric that should be high goes beyond 1.
    most = math.inf if metric in LOWER_IS_BETTER else 1.01 * scale
    trivial_name = "frequencies alone" if metric in LOWER_IS_BETTER else "constant answer"
    start, end = min(known) - room, min(max(known) + room, most)

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for number, ((_, entry), colour) in enumerate(zip(entries, (theme.model, theme.baseline), strict=False)):
            value, low, high = (scale * entry[key] for key in ("value", "low", "high"))
            axes.plot([low, high], [number, number], color=colour, linewidth=5, alpha=0.35, solid_capstyle="round")
            axes.plot([value], [number], "o", color=colour, markersize=9)
            text = f"{value:.1f}" if scale == 100 else f"{value:.3f}"
            axes.annotate(text, (value, number), (0, 9), textcoords="offset points", ha="center", color=theme.ink)
        axes.set_xlim(start, end)
        if start <= scale * floor <= end:
            axes.plot([scale * floor], [len(entries)], "D", color=theme.third, markersize=7)
        elif scale * floor > end:
            axes.text(end, len(entries), f"{scale * floor:.3f} ▸", color=theme.third, va="center", ha="right")
        else:
            text = f"◂ {scale * floor:.1f}" if scale == 100 else f"◂ {scale * floor:.3f}"
            axes.text(start + 0.01 * (end - start), len(entries), text, color=theme.third, va="center")
        axes.set_yticks(range(len(entries) + 1), [*(name for name, _ in entries), trivial_name])
        axes.tick_params(axis="y", labelcolor=theme.ink, length=0)
        axes.set_ylim(len(entries) + 0.6, -0.75)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{metric_title(metric)}{' in %' if scale == 100 else ''}, with 95 % interval")

    alt = "; ".join(f"{name}: {result_sentence(entry)}" for name, entry in entries)
    return draw("comparison", f"{alt}; {trivial_name}: {metric_value(metric, floor)}", paint, 4.7, 2.2)


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


def _names(run: Contents) -> tuple[str, str]:
    ours, theirs = run.system, run.baseline.system if run.baseline else ""
    return (ours, theirs) if ours != theirs else (f"{ours} of this run", f"{theirs} of the baseline")


def _gap(metric: str, gap: float) -> str:
    return f"{100 * abs(gap):.1f} points" if metric in PERCENT_METRICS else f"{abs(gap):.3f}"


def _evidence(test: Mcnemar | Difference | None, ours: str, theirs: str, nouns: str) -> str:
    if test is None:
        return " (their predictions cannot be paired)"
    if isinstance(test, Difference):
        low, high = (f"{end:+.3f}".replace("-", "−") for end in (test.low, test.high))
        return f" (paired bootstrap of the difference: {low} to {high})"
    counts = sorted([(test.only_model, ours), (test.only_baseline, theirs)], key=lambda entry: -entry[0])
    (more, leader), (fewer, other) = counts
    only = f"on {more} {nouns} only the {leader} is right, on {fewer} only the {other}"
    return f" ({only}; McNemar's exact test, {p_value(test.p)})"
