"""The heads of one layer in numbers: the mean over inputs of every measure, beside that of uniform attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from mirada.explain.anatomy.distance import Rows, distances, mean_distance
from mirada.explain.anatomy.entropy import mean_entropy
from mirada.explain.anatomy.landmarks import attention_to
from mirada.explain.anatomy.uniform import are_distributions, uniform
from mirada.explain.looks import Kind, Look, Tokens

NOT_DISTRIBUTIONS = "weights below zero, or rows that do not sum to one: its heads exchange and norm their maps"
NO_PLACES = "queries that have no place among their keys"


@dataclass(frozen=True)
class Heads:
    """Numbers (H,) of the heads of one layer; NaN where `missing` says why. `uniform_…` is the reference."""

    name: str
    label: str
    kind: Kind
    num_heads: int
    queries: Tokens
    keys: Tokens
    distance_H: np.ndarray
    uniform_distance: float
    farthest: float  # two tokens can be apart
    entropy_H: np.ndarray
    uniform_entropy: float
    to_H: Mapping[str, np.ndarray]
    uniform_to: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)


class HeadsTally:
    """Gathers one layer's numbers run by run."""

    def __init__(self, extent: tuple[int, ...] | None, patch: tuple[int, ...] | None, rows: Rows) -> None:
        self.extent, self.patch, self.rows = extent, patch, rows
        self.last: Look | None = None
        self.missing: dict[str, str] = {}
        self.found: dict[str, list[np.ndarray]] = {}  # measure: (B, H) of each run
        self.even: dict[str, list[float]] = {}
        self.farthest = 0.0

    def add(self, look: Look) -> None:
        self.last = look
        if not are_distributions(look.weights_BHNM):
            self.missing |= dict.fromkeys(("distance", "entropy", "to"), NOT_DISTRIBUTIONS)
            return
        even, batch = uniform(look), len(look.weights_BHNM)
        self._add("entropy", mean_entropy(look.weights_BHNM), mean_entropy(even.weights_BHNM), batch)
        references = attention_to(even)
        for name, share_BH in attention_to(look).items():
            if float(references[name]) > 0:  # else nobody may look there
                self._add(name, share_BH, references[name], batch)
        if not share_places(look, 1 if self.extent is None else len(self.extent)):
            self.missing["distance"] = NO_PLACES
            return
        distance_NM = distances(look, self.extent, self.patch)
        self.farthest = max(self.farthest, float(distance_NM.max()))
        own, reference = (mean_distance(which, distance_NM, self.rows) for which in (look, even))
        self._add("distance", own, reference, batch)

    def _add(self, name: str, values_BH: Tensor, even_11: Tensor, batch: int) -> None:
        self.found.setdefault(name, []).append(values_BH.cpu().numpy())
        self.even.setdefault(name, []).extend([float(even_11)] * batch)

    def result(self, label: str) -> Heads:
        look = self.last
        assert look is not None
        num_heads = look.weights_BHNM.shape[1]
        means = {name: _mean(found) for name, found in self.found.items()}
        even = {name: float(np.mean(values)) for name, values in self.even.items()}
        nothing = np.full(num_heads, np.nan)
        shares = [name for name in means if name not in ("distance", "entropy")]
        return Heads(
            look.name,
            label,
            look.kind,
            num_heads,
            look.queries,
            look.keys,
            nothing if "distance" in self.missing else means["distance"],
            np.nan if "distance" in self.missing else even["distance"],
            self.farthest if "distance" not in self.missing else np.nan,
            nothing if "entropy" in self.missing else means["entropy"],
            np.nan if "entropy" in self.missing else even["entropy"],
            {} if "to" in self.missing else {name: means[name] for name in shares},
            {} if "to" in self.missing else {name: even[name] for name in shares},
            self.missing,
        )


def share_places(look: Look, num_axes: int) -> bool:
    """Queries and keys lie on one plane, or in one text."""
    sizes = (look.queries.size, look.keys.size)
    return look.kind != "cross" and all(len(size) == num_axes and torch.Size(size).numel() for size in sizes)


def labels(looks: Sequence[Look]) -> list[str]:
    """'1', '2' …; in a translator the layers that write are 'target 1', 'cross 1'; what pools tokens is 'pool'."""
    numbers: dict[str, int] = {}
    found = []
    for look in looks:
        if look.kind == "self" and len(look.queries) == 1 and len(look.keys) > 1:
            found.append("pool")
            continue
        numbers[look.kind] = numbers.get(look.kind, 0) + 1
        found.append(f"{'' if look.kind == 'self' else look.kind + ' '}{numbers[look.kind]}")
    return found


def _mean(found: list[np.ndarray]) -> np.ndarray:
    """(H,) over inputs; those in which a head has no value (it looked at the class token only) are left out."""
    values_BH = np.concatenate(found)
    has_any_H = np.isfinite(values_BH).any(0)
    filled = np.where(has_any_H, values_BH, 0.0)
    return np.where(has_any_H, np.nanmean(filled, axis=0), np.nan)
