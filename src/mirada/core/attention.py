"""Attention as message passing on a weighted graph, from four parts.

    h_i = Σ_{j ∈ N_i} α(x_i, x_j) ψ_v(x_j)        α: score and position, N: neighbours, several α at once: heads

Shape letters: B batch, H heads, N queries, M keys, D model dim, K head dim, V value dim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from mirada.core import kernels
from mirada.core.cache import Cache
from mirada.core.heads import Concatenated
from mirada.core.kernels.call import Call
from mirada.core.kernels.fused import see_all
from mirada.core.neighbours import Neighbours, causal, full
from mirada.core.places import Places, line
from mirada.core.position.relative import Relative
from mirada.core.position.rotary import Rotary
from mirada.core.scoped import Scoped
from mirada.core.score import DotScore, ScaledDot, Score
from mirada.errors import MiradaError

# What computes the calls of some layers instead of the kernels: `record` puts its own here, for its thread only, as
# several may be served by one model at once.
stand_ins: Scoped[Mapping[nn.Module, Callable[[Call], Tensor]]] = Scoped("stand-ins", {})


class Attend(nn.Module):
    """h = softmax over N_i of (score(q, k) + bias) · v: attention between given queries, keys and values.

    The kernel is chosen from the parts. This is what `record` listens to, whatever module holds it.
    """

    def __init__(
        self,
        score: Score | None = None,
        neighbours: Neighbours | None = None,
        position: Relative | None = None,
        mix: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.score = ScaledDot() if score is None else score
        self.neighbours = full() if neighbours is None else neighbours
        self.position = position
        self.mix = mix
        self.dropout = dropout

    def forward(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        *,
        valid_BM: Tensor | None = None,
        queries: Places | None = None,
        keys: Places | None = None,
        neighbours: Neighbours | None = None,
    ) -> Tensor:
        """`valid_BM` is True for real keys, False for padding; `neighbours` replaces the layer's own."""
        for places, tokens in ((queries, q_BHNK), (keys, k_BHMK)):
            if places is not None:
                places.must_be_of(tokens.shape[-2])
        _check_padding(valid_BM, k_BHMK)
        k_BHMK, v_BHMV = (_for_every_head(x, q_BHNK.shape[1]) for x in (k_BHMK, v_BHMV))
        call = Call(
            q_BHNK,
            k_BHMK,
            v_BHMV,
            self.score,
            self.neighbours if neighbours is None else neighbours,
            self.position,
            self.mix,
            self.dropout if self.training else 0.0,
            valid_BM,
            queries,
            keys,
        )
        return stand_ins.get().get(self, kernels.run)(call)

    @property
    def is_plain(self) -> bool:
        """Nothing but dot products with all keys, or with all up to the query's own."""
        is_dot = isinstance(self.score, DotScore) and self.position is None and self.mix is None
        return is_dot and self.neighbours in (full(), causal())

    @property
    def is_watched(self) -> bool:
        """Somebody else computes its calls, and may ask where the tokens stand."""
        return self in stand_ins.get()

    def to_all(
        self,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        mask: Tensor | None = None,
    ) -> Tensor:
        """`forward` of a plain layer, in use, whose queries see all keys: a step of decoding, without questions.

        mask: (B, M) True for real keys, or (B, N, M) 0 for those that a query sees and −∞ for others.
        """
        assert isinstance(self.score, DotScore)
        _check_padding(mask if mask is not None and mask.dim() == 2 else None, k_BHMK)
        if k_BHMK.shape[1] != q_BHNK.shape[1]:
            k_BHMK, v_BHMV = (_for_every_head(x, q_BHNK.shape[1]) for x in (k_BHMK, v_BHMV))
        return see_all(q_BHNK, k_BHMK, v_BHMV, self.score, mask)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Attend:
        # What `.to(device)` does to parameters; a rule is no module, but may hold edges or a mask.
        self.neighbours = self.neighbours.apply(fn)
        return super()._apply(fn, recurse)

    def extra_repr(self) -> str:
        return f"neighbours={self.neighbours}, dropout={self.dropout}"


def _check_padding(valid_BM: Tensor | None, k_BHMK: Tensor) -> None:
    """Other shapes and types would be broadcast, or added to the logits, without a word."""
    if valid_BM is None:
        return
    wanted = (k_BHMK.shape[0], k_BHMK.shape[2])
    if valid_BM.shape != wanted or valid_BM.dtype != torch.bool:
        raise MiradaError(
            f"valid_BM is {tuple(valid_BM.shape)} of {valid_BM.dtype}: must be {wanted} of booleans, one for every key "
            "(those in the cache too), True for real tokens"
        )


def _for_every_head(x_BHMK: Tensor, num_heads: int) -> Tensor:
    """Key and value heads that several query heads share, once for each of them."""
    own = x_BHMK.shape[1]
    return x_BHMK if own == num_heads else x_BHMK.repeat_interleave(num_heads // own, 1)


class Attention(nn.Module):
    """h_i = Σ_{j ∈ N_i} α(x_i, y_j) ψ_v(y_j): self-attention, or cross-attention on a memory y.

        Attention(Concatenated(dim, num_heads), score=ScaledDot(), neighbours=causal(), position=Rotary(head_dim))

    Positions that are added to the tokens come before this layer; rotary and relative ones go here.
    """

    def __init__(
        self,
        heads: Concatenated,
        *,
        score: Score | None = None,
        neighbours: Neighbours | None = None,
        position: Rotary | Relative | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.rotary = position if isinstance(position, Rotary) else None
        relative = None if isinstance(position, Rotary) else position
        self.attend = Attend(score or heads.default_score(), neighbours, relative, heads.make_mix(), dropout)

    def forward(
        self,
        x_BND: Tensor,
        memory_BMD: Tensor | None = None,
        *,
        valid_BM: Tensor | None = None,
        places: Places | None = None,
        memory_places: Places | None = None,
        neighbours: Neighbours | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Without a memory the tokens look at each other. `valid_BM` speaks of all keys, those in the cache too."""
        if memory_BMD is None:
            q, k, v, places, memory_places = self._own_keys(x_BND, places, cache)
        else:
            if cache is not None and places is None and self._knows_places(neighbours):
                raise MiradaError("cross-attention with a cache needs `places` here: the cache counts no queries")
            k, v = self._memory_keys(memory_BMD, memory_places, cache)
            q = self._turn(self.heads.queries(x_BND), places)
            if len(k) != len(q):
                k, v = (each.repeat_interleave(len(q) // len(k), 0) for each in (k, v))
        out = self.attend(q, k, v, valid_BM=valid_BM, queries=places, keys=memory_places, neighbours=neighbours)
        return self.heads.join(out)

    def _own_keys(
        self, x: Tensor, places: Places | None, cache: Cache | None
    ) -> tuple[Tensor, Tensor, Tensor, Places | None, Places | None]:
        q, k, v = self.heads.project(x)
        seen = 0 if cache is None else cache.length(self)
        if places is None and (cache is not None or self.rotary is not None):
            places = line(x.shape[1], start=seen, device=x.device)
        q, k = self._turn(q, places), self._turn(k, places)
        if cache is None:
            return q, k, v, places, places
        k, v = cache.append(self, k, v)
        assert places is not None
        return q, k, v, places, cache.place(self, places)

    def _memory_keys(self, memory: Tensor, places: Places | None, cache: Cache | None) -> tuple[Tensor, Tensor]:
        def project() -> tuple[Tensor, Tensor]:
            return self._turn(self.heads.keys(memory), places), self.heads.values(memory)

        k, v = project() if cache is None else cache.memory(self, project)
        if k.shape[-2] != memory.shape[1]:
            raise MiradaError(
                f"the cache holds a memory of {k.shape[-2]} tokens and was given one of {memory.shape[1]}: "
                "use a new cache for a new memory"
            )
        return k, v

    def _knows_places(self, neighbours: Neighbours | None) -> bool:
        """It matters where a query stands."""
        rule = self.attend.neighbours if neighbours is None else neighbours
        return self.rotary is not None or self.attend.position is not None or rule != full()

    def _turn(self, q_or_k: Tensor, places: Places | None) -> Tensor:
        if self.rotary is None:
            return q_or_k
        return self.rotary(q_or_k, places or line(q_or_k.shape[-2], device=q_or_k.device))
