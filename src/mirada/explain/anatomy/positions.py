"""What a model has learned of where tokens are: how alike its position vectors are (Dosovitskiy 2020, fig. 7).

    c_ij = cos(P_i, P_j)

On a grid the vectors of one row, and of one column, should be more alike than others; in a text those of neighbours.

    T = mean of c over such pairs − mean of c over all other pairs

The test asks how likely such a T is if vectors were dealt to places at random.

Shape letters: N places, D channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mirada.core import Learned
from mirada.errors import MiradaError
from mirada.explain.anatomy.permutations import p_value

MOST_PERMUTATIONS, FEWEST_PERMUTATIONS = 999, 199
MAX_WORK = 2**28  # similarities that are added up in all permutations


@dataclass(frozen=True)
class Positions:
    """Cosines between the position vectors of a lattice, in raster order; extra tokens are left out."""

    name: str
    size: tuple[int, ...]
    cosine_NN: np.ndarray
    related: str  # which pairs should be alike
    mean_related: float
    mean_others: float
    p: float


def positions_of(model: nn.Module, num_used: int | None = None) -> Positions:
    """Of the first learned positions of a model; of a text's the first `num_used`, as later ones never learned.

    Raises a MiradaError that says why, where a model has none.
    """
    found = next(((name, part) for name, part in model.named_modules() if isinstance(part, Learned)), None)
    if found is None:
        raise MiradaError(f"{type(model).__name__}, as it was made, adds no learned vectors of positions to its tokens")
    name, learned = found
    size = learned.size
    if len(size) == 1 and num_used is not None:
        size = (min(size[0], num_used),)
    vectors_ND = learned.weight.detach()[learned.num_extra :][: int(np.prod(size))]
    return described(name, size, vectors_ND)


def described(name: str, size: tuple[int, ...], vectors_ND: Tensor) -> Positions:
    related_NN = related_places(size)
    others_NN = ~related_NN & ~np.eye(len(related_NN), dtype=bool)
    if not related_NN.any() or not others_NN.any():
        raise MiradaError(f"positions on {' × '.join(map(str, size))} places are too few to compare")
    cosine_NN = cosines(vectors_ND)
    return Positions(
        name,
        size,
        cosine_NN,
        "neighbours" if len(size) == 1 else "places of one row or column",
        float(cosine_NN[related_NN].mean()),
        float(cosine_NN[others_NN].mean()),
        more_alike(cosine_NN, related_NN),
    )


def cosines(vectors_ND: Tensor) -> np.ndarray:
    unit_ND = torch.nn.functional.normalize(vectors_ND.double().cpu(), dim=-1)
    return (unit_ND @ unit_ND.T).clamp(-1, 1).numpy()


def related_places(size: tuple[int, ...]) -> np.ndarray:
    """(N, N): True for two places that differ in one coordinate only; in a text, for neighbours."""
    if len(size) == 1:
        index_N = np.arange(size[0])
        return np.abs(index_N[:, None] - index_N) == 1
    coords_NA = np.stack(np.unravel_index(np.arange(np.prod(size)), size), axis=-1)
    return (coords_NA[:, None] != coords_NA).sum(-1) == 1


def more_alike(cosine_NN: np.ndarray, related_NN: np.ndarray) -> float:
    """p of related places being so much more alike than others. Both means follow from the sum over related pairs,
    as the sum over all pairs is the same in every order."""
    num = len(cosine_NN)
    first, second = np.nonzero(np.triu(related_NN))
    num_permutations = int(np.clip(MAX_WORK // max(len(first), 1), FEWEST_PERMUTATIONS, MOST_PERMUTATIONS))
    return p_value(lambda order: float(cosine_NN[order[first], order[second]].sum()), num, num_permutations)
