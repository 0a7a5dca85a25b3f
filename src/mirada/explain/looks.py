"""What every layer of attention did in one run of a model: the looks that the methods work on.

Shape letters: B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from mirada.core import Places

# Tokens of the input that look at each other; tokens of a translation that look at each other, and at their source.
Kind = Literal["self", "target", "cross"]


@dataclass(frozen=True)
class Tokens:
    """`num_extra` tokens that lie nowhere (a class token, say), then those of a lattice in raster order.

    `size` is (rows, columns) of patches, or (length,) of a text.
    """

    size: tuple[int, ...]
    num_extra: int = 0

    def __len__(self) -> int:
        return self.num_extra + math.prod(self.size)

    @classmethod
    def at(cls, places: Places) -> Tokens:
        """Of tokens that fill a lattice, that lattice without padding; of others a line."""
        if places.unpadded is not None:
            return cls(places.unpadded, places.num_extra)
        if len(places) == places.num_extra + math.prod(places.size):
            return cls(places.size, places.num_extra)
        return cls((len(places) - places.num_extra,), places.num_extra)


@dataclass(frozen=True)
class Look:
    """One layer's attention in one run: α, and ∂score/∂α where a gradient was asked for."""

    name: str
    weights_BHNM: Tensor
    queries: Tokens
    keys: Tokens
    kind: Kind = "self"
    gradient_BHNM: Tensor | None = None
