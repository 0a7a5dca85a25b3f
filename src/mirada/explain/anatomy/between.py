"""Every head against every other, and every layer against every other, where they look at the same tokens.

Shape letters: L layers, T heads of all layers, B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from mirada.explain.anatomy.divergence import head_divergence
from mirada.explain.anatomy.similarity import map_similarity
from mirada.explain.anatomy.uniform import are_distributions
from mirada.explain.looks import Look

MAX_WORK = 2**30  # weights that are compared; a large model is compared on fewer inputs


class BetweenTally:
    """Gathers (T, T) divergences of heads and (L, L) similarities of layers run by run; NaN: not comparable."""

    def __init__(self) -> None:
        self.divergence: list[np.ndarray] = []
        self.similarity: list[tuple[int, np.ndarray]] = []
        self.work = 0

    def add(self, looks: Sequence[Look]) -> None:
        num_heads = [look.weights_BHNM.shape[1] for look in looks]
        first = np.concatenate([[0], np.cumsum(num_heads)])
        likeness_LL = np.full((len(looks), len(looks)), np.nan)
        groups = together(looks)
        for group in groups:
            weights_LBHNM = torch.stack([looks[number].weights_BHNM for number in group])
            likeness_LL[np.ix_(group, group)] = map_similarity(weights_LBHNM).cpu().numpy()
        self.similarity.append((len(looks[0].weights_BHNM), likeness_LL))
        for sample in range(len(looks[0].weights_BHNM)):
            if self.divergence and self.work > MAX_WORK:
                return
            apart_TT = np.full((first[-1], first[-1]), np.nan)
            for group in groups:
                if not all(are_distributions(looks[number].weights_BHNM) for number in group):
                    continue
                weights_TNM = torch.cat([looks[number].weights_BHNM[sample] for number in group])
                heads = np.concatenate([np.arange(first[number], first[number + 1]) for number in group])
                apart_TT[np.ix_(heads, heads)] = head_divergence(weights_TNM).cpu().numpy()
                self.work += len(heads) * weights_TNM.numel()
            self.divergence.append(apart_TT)

    def divergence_TT(self) -> np.ndarray:
        return np.mean(self.divergence, axis=0)

    def similarity_LL(self) -> np.ndarray:
        counts, found = zip(*self.similarity, strict=True)
        return np.average(found, axis=0, weights=counts)


def together(looks: Sequence[Look]) -> list[list[int]]:
    """Numbers of the layers that have the same kind, queries, keys and number of heads."""
    groups: dict[tuple, list[int]] = {}
    for number, look in enumerate(looks):
        key = (look.kind, look.queries, look.keys, look.weights_BHNM.shape[1])
        groups.setdefault(key, []).append(number)
    return list(groups.values())
