"""BLEU and chrF by sacrebleu, with the signatures that say how they were computed (Papineni 2002, Popović 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mirada.errors import MiradaError

DRAWS = 1000


def require_sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError as error:
        raise MiradaError(
            "translations are judged by sacrebleu, which is not installed: pip install 'mirada[text]'."
        ) from error
    return sacrebleu


def quick_scores(written: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Of the whole set, 0 … 100, without intervals: for watching a training."""
    return {name: metric.corpus_score(list(written), _streams(references)).score for name, metric in _metrics().items()}


def scores(written: Sequence[str], references: Sequence[Sequence[str]]) -> dict:
    """BLEU and chrF of the whole set, their 95 % intervals over sentences drawn anew by sacrebleu, and the signatures.

    A sentence may have several references; each counts.
    """
    found: dict = {}
    for name, metric in _metrics().items():
        score = metric.corpus_score(list(written), _streams(references), n_bootstrap=DRAWS)
        low, high = max(0.0, float(score._mean - score._ci)), min(100.0, float(score._mean + score._ci))
        found |= {name: float(score.score), f"{name}_low": low, f"{name}_high": high}
        found[f"{name}_signature"] = str(metric.get_signature())
    return found


def _metrics() -> dict[str, Any]:
    sacrebleu = require_sacrebleu()
    return {"bleu": sacrebleu.metrics.BLEU(), "chrf": _with_floats(sacrebleu.metrics.CHRF())}


def _with_floats(metric: Any) -> Any:
    """Of a draw in which nothing is right the score is a float, of others numpy's: sacrebleu fails to average them."""
    compute = metric._compute_score_from_stats

    def compute_float(stats: Any) -> Any:
        score = compute(stats)
        score.score = float(score.score)
        return score

    metric._compute_score_from_stats = compute_float
    return metric


def _streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """The first reference of every sentence, then the second of every one, …, None where there is none."""
    most = max(map(len, references))
    return [[refs[number] if number < len(refs) else None for refs in references] for number in range(most)]
