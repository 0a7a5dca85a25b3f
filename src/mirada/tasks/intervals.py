"""How sure a measured number is: 95 % intervals for proportions and for anything computed from rows.

Wilson 1927:  (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n),  z = 1.96
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Z = 1.959964


def wilson(num_right: int, num: int) -> tuple[float, float]:
    """Interval of a proportion; it stays within 0..1 and does not collapse at 0 or 1."""
    share = num_right / num
    centre = share + Z**2 / (2 * num)
    spread = Z * np.sqrt(share * (1 - share) / num + Z**2 / (4 * num**2))
    return float((centre - spread) / (1 + Z**2 / num)), float((centre + spread) / (1 + Z**2 / num))


def bootstrap(
    statistic: Callable[[np.ndarray], float], num_rows: int, *, draws: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of `statistic(rows)` over rows drawn with replacement."""
    generator = np.random.default_rng(seed)
    values = [statistic(generator.integers(0, num_rows, num_rows)) for _ in range(draws)]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)
