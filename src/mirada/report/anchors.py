"""The sections of a page by the names that link to them."""

from __future__ import annotations

from mirada.report.contents import Contents

Anchors = tuple[tuple[str, str], ...]

FIRST: Anchors = (("result", "Result"), ("curves", "Learning curves"))
LAST: Anchors = (
    ("data", "Data"),
    ("model", "Model"),
    ("training", "Training"),
    ("repeat", "Repeat it"),
    ("method", "Method"),
)
OF_PIXELS: Anchors = (("drawn", "New images"), ("completed", "Completed halves"), ("unusual", "Unusual images"))
OF_PLOTS: Anchors = (
    ("validation", "Validation"),
    ("measured", "Predicted and measured"),
    ("residuals", "Where it errs"),
    ("intervals", "Intervals"),
    ("influence", "What it uses"),
    ("attention", "Which plots"),
    ("area", "Applicability"),
)
OF_MASKS: Anchors = (
    ("scores", "Class by class"),
    ("mistakes", "Worst cases"),
    ("examples", "Best cases"),
    ("attention", "Attention"),
)
OF_TASK: dict[str, Anchors] = {
    "translate": (("examples", "Translations"), ("extremes", "Worst and best"), ("alignment", "Alignment")),
    "generate": (("written", "Written by itself"), ("surprise", "Surprising passages"), ("attention", "Attention")),
    "fill": (("examples", "Hidden words"), ("senses", "Senses"), ("attention", "Attention")),
    "embed": (("neighbours", "Neighbours"), ("map", "Map of words")),
}


def anchors(run: Contents, *, has_scores: bool) -> list[tuple[str, str]]:
    """(anchor, name) in the order of the page."""
    if run.inputs == "pixels":
        own = OF_PIXELS
    elif run.inputs == "plots":
        own = OF_PLOTS
    elif run.inputs == "masks":
        own = OF_MASKS
    elif run.is_text and run.task in OF_TASK:
        own = OF_TASK[run.task]
    else:
        mistakes = "Worst cases" if run.task == "regression" else "Worst mistakes"
        own = (("mistakes", mistakes), ("examples", "Predictions"), ("attention", "Attention"))
        own = (*own, ("relevance", "What it rests on"), ("heads", "Heads")) if run.inputs == "image" else own
        own = (("scores", "Where it is right"), *own) if has_scores else own
    return [*FIRST, *own, *LAST]
