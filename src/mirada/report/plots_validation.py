"""Several ways to hold out plots side by side, of the model and of simple ones: validation.json and validation.csv."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from mirada.data.geo.splits import SCHEMES
from mirada.report.contents import Contents, read_rows
from mirada.report.paired import Difference
from mirada.report.style import Drawing, Theme, draw
from mirada.report.wording import decimal, interval_text, signed
from mirada.tasks.field_baselines import TITLES
from mirada.tasks.field_scores import block_draws, interval_of
from mirada.train.files import read_json

OURS = "model"  # what validation.json calls the model of the run
SHORT = {"knn": "kNN on coordinates", "gradient_boosting": "gradient boosting"}
LOWEST_DRAWN = -1.0  # of R², lest one bad model leaves no room for the others
COLUMNS = ("r", "mae", "rmse", "rae", "rse")


MEANING = {
    "random": "Random folds put neighbours on both sides: they say how well gaps between plots are filled.",
    "blocked": "Blocked folds hold out whole blocks of land: they say how well the model does where nobody has been.",
    "buffered": "Buffered folds also leave out the training plots near those blocks.",
}


@dataclass(frozen=True)
class Validation:
    """What the folds of each scheme gave; `rows` are the held-out plots, each once per scheme."""

    summary: dict
    rows: list[dict[str, str]]

    @property
    def schemes(self) -> list[str]:
        return [scheme for scheme in SCHEMES if scheme in self.summary["schemes"]]

    @property
    def trusted(self) -> str:
        """The scheme that says most of places where nobody has been."""
        return next((scheme for scheme in ("blocked", "buffered") if scheme in self.schemes), self.schemes[0])

    def models(self, scheme: str) -> dict[str, dict]:
        return self.summary["schemes"][scheme]["models"]

    def r2(self, scheme: str, model: str = OURS) -> float:
        return float(self.models(scheme)[model]["scores"]["r2"])

    def best_simple(self, scheme: str) -> str | None:
        simple = [name for name in self.models(scheme) if name != OURS and not np.isnan(self.r2(scheme, name))]
        return max(simple, key=lambda name: self.r2(scheme, name), default=None)

    def columns(self, scheme: str, *names: str) -> list[np.ndarray]:
        """Columns of numbers of the plots held out by a scheme, in the order of the plots."""
        of = sorted((row for row in self.rows if row["scheme"] == scheme), key=lambda row: int(row["row"]))
        return [np.array([float(row[name]) for row in of]) for name in names]

    def difference(self, one: tuple[str, str], other: tuple[str, str]) -> Difference | None:
        """R² of a (scheme, model) minus that of another over the same drawn blocks; None where plots differ."""
        rows, block, target, answer = self.columns(one[0], "row", "block", "target", one[1])
        other_rows, other_answer = self.columns(other[0], "row", other[1])
        num_blocks = len(np.unique(block))
        if num_blocks < 2 or not np.array_equal(rows, other_rows):
            return None
        first, second = (block_draws(target, values, block)["r2"] for values in (answer, other_answer))
        return Difference(*interval_of(first - second, num_blocks))


def read_validation(run: Contents) -> Validation | None:
    path = run.folder.validation
    if not path.exists():
        return None
    return Validation(read_json(path), read_rows(path.with_suffix(".csv")))


def why_not_validated(run: Contents) -> str:
    if run.section("maps").get("folds") == 0:
        return (
            "This run was not validated by folds, because maps.folds is 0: nothing says how it does by other ways to "
            "hold out plots, or whether a simple model would do as well. Train with maps.folds=3 to know."
        )
    return "The validation by folds is not finished; `mirada resume` completes it."


def title_of(model: str, run: Contents) -> str:
    return run.system if model == OURS else TITLES.get(model, model.replace("_", " "))


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


def gap_interval(gap: Difference) -> str:
    return f"95 % interval {signed(gap.low)} to {signed(gap.high)} by a paired bootstrap over blocks"


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
