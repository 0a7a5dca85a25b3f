"""What a model that writes token by token keeps between two steps.

    state = model.begin(source_BM)
    logits_BNT = model.next_logits(read_BN, state)        of the tokens not yet seen; the state moves on

Shape letters: B batch, M tokens of the source, N tokens that are read, T tokens of the vocabulary.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class State(Protocol):
    """All that the next step needs of the earlier ones, one row per sentence."""

    def reorder(self, index_B: Tensor) -> None:
        """Row b becomes the former row index[b]: beams are kept, dropped, or doubled by a longer index."""
        ...
