"""Learning curves: losses against epochs, and the watched metric against training time, with the baseline."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from mirada.report.contents import Contents
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import PERCENT_METRICS, metric_title

METRIC_OF_TASK = {
    "single-label": "accuracy",
    "multi-label": "f1",
    "regression": "r2",
    "field": "r2",
    "pixels": "bits_per_dimension",
    "translate": "bleu",
    "generate": "perplexity",
    "fill": "perplexity",
    "embed": "ranking",
    "segment": "dice",
}


NOTES = {
    "image": "The training loss is measured on augmented images with smoothed targets, so it may lie above the "
    "validation loss.",
    "pixels": "The loss is the mean surprise of a pixel, in nats; the training loss is the mean since the evaluation "
    "before, with weights that are not yet averaged.",
    "masks": "The loss is half cross-entropy, half 1 − Dice, unless train.dice_weight says otherwise; in training it "
    "is measured on augmented images.",
    "graph": "The training loss is measured with dropout, so it may lie above the validation loss.",
    "plots": "The loss is that of standardised targets. In training it is measured with dropout, and a model that "
    "looks at plots is kept from looking at near ones.",
}
OF_TOKENS = "The loss is the mean surprise of a token, in nats; in training it is measured with dropout and smoothed "
OF_TOKENS += "targets where these are set, so it may lie above the validation loss."
NOTES_OF_TEXT = {
    "translate": f"{OF_TOKENS} BLEU is that of greedy translations of at most 200 validation sentences here, so the "
    "result above, by beam search, may differ from it.",
    "generate": OF_TOKENS,
    "fill": OF_TOKENS.replace("a token", "a hidden token"),
    "embed": "The loss is that of telling a true neighbour from drawn words, summed over them.",
}


def curve_note(run: Contents) -> str:
    """What has to be known to read the curves."""
    return (NOTES_OF_TEXT.get(run.task) if run.is_text else NOTES.get(run.inputs)) or NOTES["graph"]


def learning_curves(run: Contents) -> list[Drawing]:
    return [_losses(run), _metric(run)] if run.metrics else []


def _losses(run: Contents) -> Drawing:
    rows = run.metrics
    epochs = [row["epoch"] for row in rows]

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        axes.plot(epochs, [row["train_loss"] for row in rows], "o-", color=theme.third, label="training")
        axes.plot(epochs, [row["val_loss"] for row in rows], "o-", color=theme.model, label="validation")
        axes.set_title(f"Loss of the {run.system}")
        axes.set_xlabel("epoch")
        axes.legend()
        axes.set_xlim(left=0)

    alt = f"Loss from {_ends(rows, 'train_loss')} in training and {_ends(rows, 'val_loss')} in validation"
    return draw("loss", f"{alt}, over {epochs[-1]:g} epochs.", paint)


def _metric(run: Contents) -> Drawing:
    metric = (run.result or {}).get("metric") or METRIC_OF_TASK[run.task]
    scale, unit = (100, " in %") if metric in PERCENT_METRICS else (1, "")
    both = [contents for contents in (run, run.baseline) if contents is not None and contents.metrics]
    longest = max(contents.metrics[-1]["seconds"] for contents in both)
    divisor, clock = (60, "minutes") if longest >= 120 else (1, "seconds")

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for contents, colour, mark, dash in zip(both, (theme.model, theme.baseline), "os", ("-", "--"), strict=False):
            times = [row["seconds"] / divisor for row in contents.metrics]
            values = [scale * row.get(f"val_{metric}", math.nan) for row in contents.metrics]
            role = "" if contents is run else " (baseline)"
            axes.plot(times, values, f"{mark}{dash}", color=colour, label=f"{contents.system}{role}")
        axes.set_title(f"Validation {_spoken(metric)}{unit}")
        axes.set_xlabel(f"{clock} of training")
        axes.legend()
        axes.set_xlim(left=0)

    said = "; ".join(f"{contents.system} from {_ends(contents.metrics, f'val_{metric}')}" for contents in both)
    return draw("metric", f"Validation {metric_title(metric)} over {longest / divisor:.3g} {clock}: {said}.", paint)


def _spoken(metric: str) -> str:
    """With a small initial, but for names such as F1, BLEU and chrF."""
    title = metric_title(metric)
    is_name = len(title) <= 2 or title[1:] != title[1:].lower()
    return title if is_name else title.lower()


def _ends(rows: list[dict[str, float]], key: str) -> str:
    return f"{rows[0].get(key, math.nan):.3g} to {rows[-1].get(key, math.nan):.3g}"
