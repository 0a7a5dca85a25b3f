"""How the length of a text is weighed against its probability, which every further token makes smaller.

    score(Y) = log p(Y) / penalty(|Y|),     |Y| counts the end token

    none      1
    length    |Y|^α                  as Hugging Face, fairseq and CTranslate2 do; α = 1 is the mean per token
    gnmt      ((5 + |Y|) / 6)^α      Wu 2016, eq. 14, without coverage; Vaswani 2017 with α = 0.6

The same α means different things in the two formulas, hence the names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mirada.errors import MiradaError, nearest

FORMULAS: dict[str, Callable[[int, float], float]] = {
    "none": lambda length, alpha: 1.0,
    "length": lambda length, alpha: length**alpha,
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,
}


@dataclass(frozen=True)
class LengthPenalty:
    """penalty(|Y|) by name; α > 0 favours long texts, α < 0 short ones."""

    name: str = "none"
    alpha: float = 0.6

    def __post_init__(self) -> None:
        if self.name not in FORMULAS:
            hint = nearest(self.name, FORMULAS)
            raise MiradaError(f"length penalty {self.name!r} is unknown{hint}; choose one of {', '.join(FORMULAS)}")
        if not math.isfinite(self.alpha):
            raise MiradaError(f"alpha={self.alpha} of the length penalty: must be a finite number, such as 0.6")

    def score(self, log_probability: float, length: int) -> float:
        return log_probability / FORMULAS[self.name](length, self.alpha)

    def best_score(self, log_probability: float, shortest: int, longest: int) -> float:
        """Of any text that is no likelier: every formula is monotone, so the best length is one of the two."""
        return max(self.score(log_probability, shortest), self.score(log_probability, longest))
