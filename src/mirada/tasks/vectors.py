"""What a matrix of word vectors knows: neighbours, and analogies as sums of vectors.

    neighbours:  the k words with the largest cos(v_t, v_w)        analogy a − b + c:  those with v̂_a − v̂_b + v̂_c

Shape letters: T tokens of the vocabulary, D dim.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mirada.errors import MiradaError


def neighbours(vectors_TD: Tensor, token: int, k: int) -> list[tuple[int, float]]:
    """The k words nearest to a word by cosine, best first, without itself: (token, cosine)."""
    unit_TD = _unit(vectors_TD, (token,))
    return _nearest(unit_TD, unit_TD[token], k, (token,))


def analogy(vectors_TD: Tensor, a: int, b: int, c: int, k: int) -> list[tuple[int, float]]:
    """The k words nearest to a − b + c, best first, without these three: "king" − "man" + "woman".

    Vectors are taken at length one (Mikolov 2013, "Linguistic Regularities"), so that a frequent word weighs no more.
    """
    unit_TD = _unit(vectors_TD, (a, b, c))
    return _nearest(unit_TD, unit_TD[a] - unit_TD[b] + unit_TD[c], k, (a, b, c))


def _unit(vectors_TD: Tensor, tokens: tuple[int, ...]) -> Tensor:
    for token in tokens:
        if not 0 <= token < len(vectors_TD):
            raise MiradaError(f"token {token}: must be 0 to {len(vectors_TD) - 1}, as there are that many vectors")
    return F.normalize(vectors_TD.detach(), dim=1)


def _nearest(unit_TD: Tensor, wanted_D: Tensor, k: int, without: tuple[int, ...]) -> list[tuple[int, float]]:
    cosine_T = unit_TD @ F.normalize(wanted_D, dim=0)
    cosine_T[list(without)] = -torch.inf
    best = cosine_T.topk(min(k, len(cosine_T) - len(set(without))))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
