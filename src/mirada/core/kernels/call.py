"""One evaluation of attention: the tensors and the parts, as every kernel receives them.

Shape letters: B batch, H heads, N queries, M keys, K head dim, V value dim.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from mirada.core.neighbours import Neighbours
from mirada.core.places import Places, line
from mirada.core.position.relative import Relative
from mirada.core.score import Score


@dataclass(frozen=True)
class Call:
    """What to compute: h = dropout(mix(softmax over N_i of score(q, k) + bias)) v."""

    q_BHNK: Tensor
    k_BHMK: Tensor
    v_BHMV: Tensor
    score: Score
    neighbours: Neighbours
    position: Relative | None = None
    mix: nn.Module | None = None
    dropout: float = 0.0
    valid_BM: Tensor | None = None  # True: the key is a real token; False: padding, nobody looks at it
    queries: Places | None = None  # None: a line from 0
    keys: Places | None = None

    @property
    def is_self_attention(self) -> bool:
        """Queries and keys are the same tokens, all of them and in order."""
        if self.q_BHNK.shape[-2] != self.k_BHMK.shape[-2] or self.queries is not self.keys:
            return False
        return self.queries is None or self.queries.is_whole

    @property
    def adds_to_values(self) -> bool:
        """Shaw's a^V: the position also changes what is looked at, so the weights must be explicit."""
        return getattr(self.position, "value_table", None) is not None

    @property
    def query_places(self) -> Places:
        return self.queries or line(self.q_BHNK.shape[-2], device=self.q_BHNK.device)

    @property
    def key_places(self) -> Places:
        return self.keys or line(self.k_BHMK.shape[-2], device=self.k_BHMK.device)
