"""How likely a number as large as the one found is if labels mean nothing: the permutation test.

p = (1 + number of permutations whose statistic reaches the observed one) / (1 + number of permutations)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SEED = 0


def p_value(statistic: Callable[[np.ndarray], float], num_labels: int, num_permutations: int) -> float:
    """`statistic` of an order of the labels; the identity is what was observed. Large values count as evidence."""
    generator = np.random.default_rng(SEED)
    observed = statistic(np.arange(num_labels))
    # Orders that are equal but for rounding reach it too.
    least = observed - 1e-12 * max(1.0, abs(observed))
    reached = sum(statistic(generator.permutation(num_labels)) >= least for _ in range(num_permutations))
    return (1 + reached) / (1 + num_permutations)
