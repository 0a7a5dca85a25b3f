"""Relevance from the tokens that give the answer down to the input, layer by layer.

    average     r ← r · normrow(M + I)        a token is as much itself as what it sees (rollouts)
    added       r ← r + r · M                 what it sees is added to itself (Chefer)

As vectors from the top: r · M_L · … · M_1 costs L products of a row with a matrix, not of matrices. A model that reads
a source has two of them: a look across moves relevance from the target to the source.

Shape letters: B batch, R readers (rows that are followed), N queries, M keys, X tokens below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.carry import carried, origins
from mirada.explain.looks import Look, Tokens

Matrix = Callable[[Look], Tensor]  # (B, N, M), nobody below zero
# relevance of the queries (B, R, N), matrix, who has an origin (N,), which keys have (M,) → (of oneself, of the seen)
Step = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Relevance:
    """r (B, R, X) of the tokens that a model reads; of a translation, also of the target's tokens before."""

    values_BRX: Tensor
    tokens: Tokens
    target_BRN: Tensor | None = None


def average(r_BRN: Tensor, matrix_BNM: Tensor, has_origin_N: Tensor, has_origin_M: Tensor) -> tuple[Tensor, Tensor]:
    """r · normrow(M + I), in its two parts; what has no origin does not count."""
    matrix_BNM = matrix_BNM * has_origin_M
    whole_BN = (matrix_BNM.sum(-1) + has_origin_N).clamp(min=1e-12)
    share_BRN = r_BRN / whole_BN[:, None]
    return share_BRN * has_origin_N, share_BRN @ matrix_BNM


def added(r_BRN: Tensor, matrix_BNM: Tensor, has_origin_N: Tensor, has_origin_M: Tensor) -> tuple[Tensor, Tensor]:
    """r + r · M, in its two parts."""
    return r_BRN, r_BRN @ matrix_BNM


def walk(looks: Sequence[Look], start_BRN: Tensor, matrix: Matrix, step: Step) -> Relevance:
    """`start_BRN` is the share of each of the last layer's queries in the answer, for each reader."""
    require_chain(looks, start_BRN)
    own = [look for look in looks if look.kind == "self"]
    target = [look for look in looks if look.kind != "self"]
    if not target:
        values, tokens = _down(own, start_BRN, matrix, step)
        return Relevance(values, tokens)
    r_BRN, of_source_BRM = start_BRN, None
    for look in reversed(target):
        across = look.kind == "cross"
        ones_N, ones_M = start_BRN.new_ones(len(look.queries)), start_BRN.new_ones(len(look.keys))
        kept, seen = step(r_BRN, matrix(look), ones_N, ones_M)
        r_BRN = kept if across else kept + seen
        if across:
            of_source_BRM = seen if of_source_BRM is None else of_source_BRM + seen
    if of_source_BRM is None or not own:
        raise MiradaError("no layer looked at the source, so nothing of the answer can be followed to it")
    values, tokens = _down(own, of_source_BRM, matrix, step)
    return Relevance(values, tokens, target_BRN=r_BRN)


def _down(looks: Sequence[Look], r_BRN: Tensor, matrix: Matrix, step: Step) -> tuple[Tensor, Tokens]:
    for number in reversed(range(len(looks))):
        look = looks[number]
        below = looks[number - 1].queries if number else bottom(look)
        ends = [origins(tokens, below).to(r_BRN) for tokens in (look.queries, look.keys)]
        kept, seen = step(r_BRN, matrix(look), *ends)
        r_BRN = carried(kept, look.queries, below) + carried(seen, look.keys, below)
    return r_BRN, bottom(looks[0])


def bottom(first: Look) -> Tokens:
    """The tokens that the first layer gets: its queries, or its keys if only these were not pooled."""
    return max(first.queries, first.keys, key=len)


def require_chain(looks: Sequence[Look], start_BRN: Tensor) -> None:
    if not looks:
        raise MiradaError("no layer of attention ran, so there is nothing to follow to the input")
    batch = start_BRN.shape[0]
    for look in looks:
        if look.weights_BHNM.ndim != 4 or look.weights_BHNM.shape[0] != batch:
            raise MiradaError(
                f"the attention of {look.name} is of shape {tuple(look.weights_BHNM.shape)}, not one map for each of "
                f"{batch} inputs: its layers are no chain to the input; ask for integrated gradients or occlusion"
            )
    if start_BRN.shape[-1] != len(looks[-1].queries):
        raise MiradaError(
            f"{start_BRN.shape[-1]} shares of the answer for the {len(looks[-1].queries)} tokens of {looks[-1].name}: "
            "give one for each"
        )


def gradient_of(look: Look) -> Tensor:
    if look.gradient_BHNM is None:
        raise MiradaError(f"{look.name} was traced without a gradient: trace it with a score to explain")
    return look.gradient_BHNM
