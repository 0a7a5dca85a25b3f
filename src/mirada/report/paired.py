"""Which of two models is better on the same images, and is it clear?

McNemar's exact test:  b, c images that only one of the two gets right;  p = 2 P(X ≤ min(b, c)),  X ~ Binomial(b + c, ½)
Paired bootstrap:      metric(model, rows) − metric(baseline, rows) over rows drawn with replacement (Koehn 2004)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.tasks.bleu import require_sacrebleu
from mirada.tasks.intervals import bootstrap
from mirada.tasks.scores import r2


@dataclass(frozen=True)
class Mcnemar:
    only_model: int
    only_baseline: int
    p: float

    @property
    def is_clear(self) -> bool:
        return self.p < 0.05


@dataclass(frozen=True)
class Difference:
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0


def compare(run: Contents) -> Mcnemar | Difference | None:
    """The paired comparison of a run with its baseline; None where the predictions are not of the same images."""
    if run.baseline is None:
        return None
    ours, theirs = run.predictions, run.baseline.predictions
    if not ours or [(row["name"], row["row"]) for row in ours] != [(row["name"], row["row"]) for row in theirs]:
        return None
    if run.task == "single-label":
        return mcnemar(_right(ours), _right(theirs))
    if run.task == "multi-label":
        return paired_difference(_f1_of_rows(ours), _f1_of_rows(theirs), len(ours))
    if run.task in METRIC_OF_TEXTS:
        return _compare_texts(METRIC_OF_TEXTS[run.task], ours, theirs)
    if run.task == "segment":
        return paired_difference(_mean_of_rows(ours, "dice"), _mean_of_rows(theirs, "dice"), len(ours))
    if run.task == "embed":  # its rows are words, not the comparisons that were counted
        return None
    names = run.data["target_names"]
    return paired_difference(_r2_of_rows(ours, names), _r2_of_rows(theirs, names), len(ours))


def mcnemar(right_model: np.ndarray, right_baseline: np.ndarray) -> Mcnemar:
    only_model = int((right_model & ~right_baseline).sum())
    only_baseline = int((~right_model & right_baseline).sum())
    differing = only_model + only_baseline
    p = binomtest(only_model, differing, 0.5).pvalue if differing else 1.0
    return Mcnemar(only_model, only_baseline, float(p))


RowMetric = Callable[[np.ndarray], float]


def paired_difference(model: RowMetric, baseline: RowMetric, num_rows: int) -> Difference:
    return Difference(*bootstrap(lambda rows: model(rows) - baseline(rows), num_rows))


def _mean_of_rows(rows: list[dict[str, str]], column: str) -> RowMetric:
    """Of the rows that say something."""
    values = np.array([float(row[column] or "nan") for row in rows])
    return lambda chosen: float(np.nanmean(values[chosen]))


def label_set(text: str) -> set[str]:
    return {name for name in text.split(";") if name}


def _right(rows: list[dict[str, str]]) -> np.ndarray:
    return np.array([row["predicted"] == row["target"] for row in rows])


def _f1_of_rows(rows: list[dict[str, str]]) -> RowMetric:
    """Micro F1 = 2 Σ hits / Σ (targets + predictions)."""
    pairs = [(label_set(row["target"]), label_set(row["predicted"])) for row in rows]
    hits = np.array([len(target & predicted) for target, predicted in pairs])
    total = np.array([len(target) + len(predicted) for target, predicted in pairs])
    return lambda chosen: 2 * hits[chosen].sum() / total[chosen].sum() if total[chosen].sum() else 1.0


def _r2_of_rows(rows: list[dict[str, str]], names: list[str]) -> RowMetric:
    target, predicted = (columns(rows, word, names) for word in ("target", "predicted"))
    return lambda chosen: r2(target[chosen], predicted[chosen])


def _bleu_of_rows(rows: list[dict[str, str]]) -> RowMetric:
    """BLEU of some sentences, from what each adds to the counts of n-grams; against their first references."""
    metric = require_sacrebleu().metrics.BLEU(effective_order=True)
    found = [metric.sentence_score(row["predicted"], [row["target"]]) for row in rows]
    correct, total = (np.array([getattr(score, name) for score in found]) for name in ("counts", "totals"))
    length = np.array([(score.sys_len, score.ref_len) for score in found])

    def bleu(chosen: np.ndarray) -> float:
        sums = [each[chosen].sum(0).tolist() for each in (correct, total)]
        return metric.compute_bleu(*sums, *length[chosen].sum(0).tolist()).score

    return bleu


def _perplexity_of_rows(rows: list[dict[str, str]]) -> RowMetric:
    """exp(nats / tokens); passages of running text are all of one length."""
    count = np.array([float(row.get("asked") or 1) for row in rows])
    nats = count * np.array([float(row["nats_per_token"]) for row in rows])
    return lambda chosen: float(np.exp(min(nats[chosen].sum() / max(count[chosen].sum(), 1), 700.0)))


METRIC_OF_TEXTS = {"translate": _bleu_of_rows, "generate": _perplexity_of_rows, "fill": _perplexity_of_rows}


def _compare_texts(
    metric: Callable[[list[dict[str, str]]], RowMetric], ours: list[dict[str, str]], theirs: list[dict[str, str]]
) -> Difference | None:
    try:
        return paired_difference(metric(ours), metric(theirs), len(ours))
    except MiradaError:  # BLEU without sacrebleu, where a report is made elsewhere than the run
        return None


def columns(rows: list[dict[str, str]], word: str, names: list[str]) -> np.ndarray:
    """(N, T) numbers of the columns `word_<name>`."""
    return np.array([[float(row[f"{word}_{name}"]) for name in names] for row in rows])
