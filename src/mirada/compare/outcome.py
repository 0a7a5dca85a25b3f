"""The outcome of a comparison: one row per entrant, as a table and as a figure."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from mirada.compare.contest import Contest, ContestFolder, Entrant
from mirada.compare.statistics import Interval, difference, mean_over_seeds
from mirada.report.style import Drawing, Theme, draw, plain_labels
from mirada.report.wording import PERCENT_METRICS, metric_title
from mirada.train.folder import RunFolder


@dataclass(frozen=True)
class Row:
    entrant: Entrant
    runs: list[RunFolder]
    metric: str
    score: Interval
    to_first: Interval | None  # None: it is the first
    num_parameters: int
    flops: int | None  # of one forward pass of one image, counted
    formula_flops: int | None  # the same by the formulas of the layers
    seconds_per_step: float | None  # as measured before the trainings; None: the budget was not in minutes
    per_second: float  # training images
    epochs: float

    @property
    def curves(self) -> list[list[tuple[float, float]]]:
        """Of every seed: seconds of training, validation metric."""
        name = f"val_{self.metric}"
        return [[(self._seconds(row), float(row[name])) for row in run.read_metrics()] for run in self.runs]

    def _seconds(self, row: dict[str, str]) -> float:
        """By the timed step where there is one: the clock of a training also counts what others did meanwhile."""
        return float(row["seconds"]) if self.seconds_per_step is None else int(row["step"]) * self.seconds_per_step


def outcome(folder: ContestFolder, contest: Contest, steps: dict[str, dict]) -> list[Row]:
    """Of the entrants whose runs are all finished, in the order they were named; `steps` is steps.json."""
    rows: list[Row] = []
    for entrant in contest.parsed():
        runs = [folder.run(entrant, seed) for seed in range(contest.seeds)]
        if not all(run.is_finished for run in runs):
            continue
        results = [run.read_result() for run in runs]
        data = runs[0].read_data()
        count = next(data[name] for name in ("num_images", "num_nodes", "num_texts") if name in data)
        measured = steps.get(entrant.label, {})
        trained_at = _total(results, "samples_seen") / max(_total(results, "seconds_training"), 1e-9)
        rows.append(
            Row(
                entrant=entrant,
                runs=runs,
                metric=results[0]["metric"],
                score=mean_over_seeds([result["value"] for result in results]),
                to_first=difference(runs, rows[0].runs) if rows else None,
                num_parameters=results[0]["num_parameters"],
                flops=measured.get("flops"),
                formula_flops=measured.get("formula_flops"),
                seconds_per_step=measured.get("seconds_per_step"),
                per_second=measured.get("samples_per_second", trained_at),
                epochs=results[0]["samples_seen"] / count["train"],
            )
        )
    return rows


def cells(rows: list[Row]) -> list[dict[str, str]]:
    """What the table shows, in words."""
    return [
        {
            "entrant": row.entrant.label,
            "parameters": f"{row.num_parameters:,}",
            "MFLOP per image": _millions(row.flops),
            "by formula": _millions(row.formula_flops),
            "images/s in training": f"{row.per_second:,.0f}",
            "epochs": f"{row.epochs:.1f}",
            metric_title(row.metric): _score(row),
            "against the first": "" if row.to_first is None else _difference(row.to_first, row.metric),
        }
        for row in rows
    ]


def numbers(rows: list[Row]) -> list[dict]:
    """The same unrounded, one line per entrant."""
    return [
        {
            "entrant": row.entrant.label,
            "num_parameters": row.num_parameters,
            "flops": row.flops,
            "formula_flops": row.formula_flops,
            "seconds_per_step": row.seconds_per_step,
            "images_per_second": row.per_second,
            "epochs": row.epochs,
            "metric": row.metric,
            **{f"seed_{seed}": run.read_result()["value"] for seed, run in enumerate(row.runs)},
            **_numbers("value", row.score),
            **_numbers("difference", row.to_first),
        }
        for row in rows
    ]


def markdown(lines: list[dict[str, str]]) -> str:
    if not lines:
        return ""
    names = list(lines[0])
    table = [names, ["---"] * len(names), *([line[name] for name in names] for line in lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table) + "\n"


def figure(rows: list[Row]) -> Drawing:
    """Left every entrant's mean and interval, with a dot per seed; right its way there against training time."""
    scale, unit = (100, " in %") if rows[0].metric in PERCENT_METRICS else (1, "")
    title = metric_title(rows[0].metric)

    def paint(canvas: Figure, theme: Theme) -> None:
        colours = [theme.model, theme.baseline, theme.third, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1"]
        left, right = canvas.subplots(1, 2, width_ratios=(1.1, 1))
        for place, row in enumerate(rows):
            colour = colours[place % len(colours)]
            height = len(rows) - 1 - place
            if row.score.low is not None and row.score.high is not None:
                left.plot([scale * row.score.low, scale * row.score.high], [height, height], color=colour, linewidth=3)
            values = [scale * run.read_result()["value"] for run in row.runs]
            left.plot(values, [height] * len(values), "o", color=colour, markersize=4, alpha=0.6)
            left.plot([scale * row.score.value], [height], "D", color=colour, markersize=7)
            for curve in row.curves:
                seconds, reached = zip(*curve, strict=True)
                right.plot(seconds, [scale * value for value in reached], color=colour, alpha=0.85)
        left.set_yticks(range(len(rows)), [row.entrant.label for row in reversed(rows)])
        plain_labels(left.get_yticklabels())
        left.set_ylim(-0.6, len(rows) - 0.4)
        if scale == 100:  # the interval of two seeds may reach beyond what a share can be
            low, high = left.get_xlim()
            left.set_xlim(max(low, 0), min(high, 100))
        left.set_title(f"Held-out {title.lower()}{unit}")
        right.set_title(f"Validation {title.lower()}{unit}")
        right.set_xlabel("seconds of training")

    said = "; ".join(f"{row.entrant.label} {_score(row)}" for row in rows)
    return draw("comparison", f"{title}: {said}.", paint, width=9.5, height=1.6 + 0.32 * max(len(rows), 5))


def _total(results: list[dict], name: str) -> float:
    return sum(result[name] for result in results)


def _millions(flops: int | None) -> str:
    return "" if flops is None else f"{flops / 1e6:,.1f}"


def _score(row: Row) -> str:
    scale, unit = (100, " %") if row.metric in PERCENT_METRICS else (1, "")
    digits = 2 if scale == 100 else 3
    text = f"{scale * row.score.value:.{digits}f}"
    if row.score.low is not None:
        text += f" ± {scale * (row.score.value - row.score.low):.{digits}f}"
    return text + unit


def _difference(found: Interval, metric: str) -> str:
    scale = 100 if metric in PERCENT_METRICS else 1
    digits = 2 if scale == 100 else 3
    text = f"{scale * found.value:+.{digits}f}"
    if found.low is None or found.high is None:
        return text
    clear = "" if found.is_clear else ", unclear"
    return f"{text} ({scale * found.low:+.{digits}f} to {scale * found.high:+.{digits}f}{clear})"


def _numbers(name: str, found: Interval | None) -> dict[str, float | None]:
    if found is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
