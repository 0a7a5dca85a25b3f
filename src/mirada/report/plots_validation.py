"""What the folds of a run on plots gave, for the model and for simple ones: validation.json and validation.csv."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirada.data.geo.splits import SCHEMES
from mirada.report.contents import Contents, read_rows
from mirada.report.paired import Difference
from mirada.report.wording import signed
from mirada.tasks.field_baselines import TITLES
from mirada.tasks.field_scores import block_draws, interval_of
from mirada.train.files import read_json

OURS = "model"  # what validation.json calls the model of the run


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


def gap_interval(gap: Difference) -> str:
    return f"95 % interval {signed(gap.low)} to {signed(gap.high)} by a paired bootstrap over blocks"
