"""Who is ahead, and whether what was held out is enough to say so."""

from __future__ import annotations

from mirada.report.contents import Contents
from mirada.report.paired import Difference, Mcnemar, compare
from mirada.report.plots_verdict import against_simple
from mirada.report.wording import (
    HUNDRED_METRICS,
    LOWER_IS_BETTER,
    PERCENT_METRICS,
    decimal,
    interval_text,
    metric_title,
    metric_value,
    p_value,
    percent,
    signed,
)

CONVOLUTIONAL = ("cnn", "resnet", "unet")
EDGELESS = "mlp"  # of graphs: it sees the features of a node and no other node
TRIVIAL = {
    "accuracy": "Always answering the most frequent class",
    "f1": "Always answering the labels that most images have",
    "r2": "Always answering the mean",
    "bits_per_dimension": "Knowing only how frequent each colour is",
    "bleu": "Copying the source",
    "perplexity": "Knowing only how frequent each token is",
    "ranking": "Answering by chance",
    "dice": "Saying the same class of every pixel",
}
NO_BASELINE = "No baseline was trained, so nothing says whether a simpler model would do as well."


def verdict(run: Contents) -> str:
    result, opponent = run.result, run.baseline
    assert result is not None
    if run.inputs == "pixels":
        return probe(result)
    if opponent is None:
        return against_simple(run) if run.inputs == "plots" else alone(run)
    if opponent.result is None:
        return f"The baseline {opponent.system} was not finished; `mirada resume` completes it."
    said = against(run, opponent)
    if run.inputs == "plots":
        return f"{said} {against_simple(run)}"
    return f"{said} {word_counts(run)}" if "word_counts" in result else said


def against(run: Contents, opponent: Contents) -> str:
    """The run and its baseline, by what they answered about the same rows."""
    assert run.result is not None and opponent.result is not None
    metric, gap = run.result["metric"], run.result["value"] - opponent.result["value"]
    lead = -gap if metric in LOWER_IS_BETTER else gap
    ours, theirs = _names(run)
    test = compare(run)
    evidence = _evidence(test, ours, theirs, run)
    without_edges = opponent.system == EDGELESS and run.system != EDGELESS
    clear = test is not None and test.is_clear
    if not clear:
        leader = ours if lead > 0 else theirs
        first = "Both score the same" if gap == 0 else f"The {leader} is {_gap(metric, gap)} ahead"
        unsaid = " Nothing says that the edges help." if without_edges else ""
        return f"{first}, but these {run.nouns} cannot tell the two apart{evidence}.{unsaid}"
    if lead > 0:
        said = " The baseline sees no edges, so the graph helps." if without_edges else ""
        return f"The {ours} is {_gap(metric, gap)} ahead of the {theirs}, and that is clear{evidence}.{said}"
    winner = "A CNN" if opponent.system in CONVOLUTIONAL else "The baseline"
    winner = "A model without edges" if without_edges else winner
    ahead = f"the {theirs} is {_gap(metric, gap)} ahead, and that is clear{evidence}"
    return f"{winner} does better on this data: {ahead}."


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


def alone(run: Contents) -> str:
    """What can be said where no other model was trained."""
    result = run.result or {}
    if "word_counts" in result:
        return word_counts(run)
    if result["metric"] == "perplexity":
        value, floor = (metric_value("perplexity", result[key]) for key in ("value", "majority"))
        what = "a hidden token" if run.task == "fill" else "the next token"
        return (
            f"On average it is as unsure of {what} as if it chose evenly among {value} of them; knowing only their "
            f"frequencies, it would be among {floor}. {NO_BASELINE}"
        )
    if result["metric"] == "ranking":
        return (
            "It tells words that stood near each other from words drawn at random. Whether near vectors mean like "
            "words, only the neighbours below can show."
        )
    return NO_BASELINE


def word_counts(run: Contents) -> str:
    """The model of a text against a linear one of its words, which knows nothing of their order."""
    assert run.result is not None
    ours, theirs = run.result, run.result["word_counts"] | {"metric": "accuracy"}
    told = f"{percent(theirs['accuracy'])} ({interval_text(theirs)})"
    gap = f"{100 * abs(ours['value'] - theirs['accuracy']):.1f} points"
    if ours["low"] > theirs["high"]:
        return (
            f"The {run.system} is {gap} ahead of a linear model of word counts, {told}, and that is clear: their "
            "intervals do not overlap. More than counting words helps here."
        )
    if ours["value"] > theirs["accuracy"]:
        return (
            f"The {run.system} is {gap} ahead of a linear model of word counts, {told}, but their intervals overlap: "
            "these texts cannot tell the two apart, and counting words takes seconds."
        )
    how = "better" if theirs["low"] > ours["high"] else "as well or better"
    return (
        f"A linear model of word counts does {how} on this data: it is right for {told}. It takes seconds to train, so "
        "use it unless more texts, or weights that were trained before, change this."
    )


def _names(run: Contents) -> tuple[str, str]:
    ours, theirs = run.system, run.baseline.system if run.baseline else ""
    return (ours, theirs) if ours != theirs else (f"{ours} of this run", f"{theirs} of the baseline")


def _gap(metric: str, gap: float) -> str:
    if metric in PERCENT_METRICS:
        return f"{100 * abs(gap):.1f} points"
    if metric in HUNDRED_METRICS:
        return f"{abs(gap):.1f} {metric_title(metric)}"
    return metric_value(metric, abs(gap)) if metric == "perplexity" else decimal(abs(gap))


def _evidence(test: Mcnemar | Difference | None, ours: str, theirs: str, run: Contents) -> str:
    if test is None:
        return " (their predictions cannot be paired)"
    if isinstance(test, Difference):
        low, high = (signed(end, 2 if run.is_text else 3) for end in (test.low, test.high))
        return f" (paired bootstrap of the difference: {low} to {high})"
    counts = sorted([(test.only_model, ours), (test.only_baseline, theirs)], key=lambda entry: -entry[0])
    (more, leader), (fewer, other) = counts
    only = f"on {more} {run.nouns} only the {leader} is right, on {fewer} only the {other}"
    return f" ({only}; McNemar's exact test, {p_value(test.p)})"
