"""The results of benchmarks/translation.py by contender, and what can be said about their order."""

from __future__ import annotations

import statistics
from itertools import pairwise

TITLES = {
    "attention": "GRU with additive attention",
    "no attention": "GRU without attention",
    "transformer": "Transformer",
}
METRICS = {"bleu": "BLEU", "chrf": "chrF"}
UNSAID = {"transformer": 4e-3, "attention": 1e-3, "no attention": 1e-3}  # rates of results that do not tell theirs


def by_contender(jobs: list[dict]) -> dict[str, list[dict]]:
    """The jobs of each contender, in the order of their seeds; the best by mean BLEU first."""
    found: dict[str, list[dict]] = {}
    for job in sorted(jobs, key=lambda job: job["seed"]):
        found.setdefault(job["contender"], []).append(job)
    return dict(sorted(found.items(), key=lambda item: -mean(item[1], "bleu")))


def mean(jobs: list[dict], metric: str) -> float:
    return statistics.mean(job[metric] for job in jobs)


def rows_of(jobs: list[dict]) -> list[dict[str, str]]:
    """One row per contender: every seed with its interval, and their mean."""
    rows = []
    for name, own in by_contender(jobs).items():
        row = {"system": TITLES[name], "parameters": f"{own[0]['num_parameters']:,}"}
        row |= {
            "rate": f"{own[0].get('learning_rate', UNSAID[name]):g}",
            "steps": f"{own[0]['steps']:,}",
            "epochs": f"{own[0]['epochs']:.1f}",
        }
        for metric, title in METRICS.items():
            seeds = (f"{job[metric]:.1f} ({job[metric + '_low']:.1f}–{job[metric + '_high']:.1f})" for job in own)
            row |= {title: f"{mean(own, metric):.1f}", f"{title} by seed": ", ".join(seeds)}
        rows.append(row)
    return rows


def ordering(jobs: list[dict]) -> str:
    """Two contenders are apart where every interval of one lies above every interval of the other."""
    groups = by_contender(jobs)
    said = []
    for metric, title in METRICS.items():
        order = sorted(groups, key=lambda name: -mean(groups[name], metric))
        for upper, lower in pairwise(order):
            gap = mean(groups[upper], metric) - mean(groups[lower], metric)
            is_apart = min(j[f"{metric}_low"] for j in groups[upper]) > max(j[f"{metric}_high"] for j in groups[lower])
            verdict = "all intervals apart" if is_apart else "intervals overlap, so the order is open"
            said.append(f"{title}: {TITLES[upper]} above {TITLES[lower]} by {gap:.1f}, {verdict}.")
    return " ".join(said)
