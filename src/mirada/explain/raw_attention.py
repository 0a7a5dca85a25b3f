"""The attention of one layer, as it is: where the tokens that give the answer look.

    map = mean_h A^l[reader],   or of one head h

It says where a layer looks, not what the answer depends on; and tokens of deep layers are no longer one place.

Shape letters: B batch, H heads, R readers, N queries, M keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.looks import Look
from mirada.explain.walk import Relevance


def raw_attention(look: Look, start_BRN: Tensor, head: int | None = None) -> Relevance:
    weights_BHNM = look.weights_BHNM
    num_heads = weights_BHNM.shape[1]
    if head is not None and not -num_heads <= head < num_heads:
        raise MiradaError(f"{look.name} has no head {head}: there are {num_heads}, from 0")
    matrix_BNM = weights_BHNM.mean(1) if head is None else weights_BHNM[:, head]
    if start_BRN.shape[-1] != matrix_BNM.shape[1] or start_BRN.shape[0] != matrix_BNM.shape[0]:
        raise MiradaError(
            f"{look.name} has {matrix_BNM.shape[1]} tokens that look, for each of {matrix_BNM.shape[0]} inputs, and "
            f"{tuple(start_BRN.shape)} readers were given"
        )
    return Relevance(start_BRN @ matrix_BNM, look.keys)


def look_named(looks: Sequence[Look], layer: int | str) -> Look:
    """By its number in the order of running, from 0 or from the end, or by its name."""
    if isinstance(layer, int) and -len(looks) <= layer < len(looks):
        return looks[layer]
    for look in looks:
        if look.name == layer:
            return look
    raise MiradaError(
        f"no layer {layer!r} ran: there are {len(looks)}, from 0, by name {', '.join(look.name for look in looks)}"
    )
