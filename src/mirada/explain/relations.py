"""Which head finds which relation of words (Clark 2019).

    found(l, h) = share of the words i of a relation whose partner j the head looks at most: argmax_k α_ik = j
    offset      = the same for a head that always looks d words on, with the best d

Among many heads one is good by chance: it is chosen on every other text, and judged on the rest. Both directions of a
relation are relations of their own.

Shape letters: B texts, H heads, N tokens, L layers, E links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.looks import Look

FARTHEST = 5  # words that a fixed offset may reach


@dataclass(frozen=True)
class RelationScore:
    """`found_LH` on all texts; the best head, chosen on one half of them, and what it finds in the other half."""

    found_LH: Tensor
    layer: int
    head: int
    found: float
    offset: int
    offset_found: float
    num_links: int  # of the half that judges

    @property
    def gain(self) -> float:
        """Over the best fixed offset, which needs no attention."""
        return self.found - self.offset_found


def relation_scores(
    looks: Sequence[Look], links: Mapping[str, Tensor], *, is_word_BN: Tensor | None = None
) -> dict[str, RelationScore]:
    """`links[name]` is (E, 3): text, who looks, at whom. Only words count (`is_word_BN`), not special tokens."""
    if not looks:
        raise MiradaError("no looks are given: trace the model on some texts first")
    favourite_LBHN = torch.stack([_favourite(look, is_word_BN) for look in looks])
    return {name: _score(name, favourite_LBHN, link_E3) for name, link_E3 in links.items()}


def _favourite(look: Look, is_word_BN: Tensor | None) -> Tensor:
    """(B, H, N) the word that each token looks at most."""
    weights_BHNM = look.weights_BHNM
    if is_word_BN is not None:
        if is_word_BN.shape != (weights_BHNM.shape[0], weights_BHNM.shape[-1]):
            raise MiradaError(
                f"is_word_BN is {tuple(is_word_BN.shape)}, for {look.name} with weights of {tuple(weights_BHNM.shape)}"
            )
        weights_BHNM = weights_BHNM.masked_fill(~is_word_BN[:, None, None, :], -1.0)
    return weights_BHNM.argmax(-1)


def _score(name: str, favourite_LBHN: Tensor, link_E3: Tensor) -> RelationScore:
    if link_E3.ndim != 2 or link_E3.shape[1] != 3 or link_E3.is_floating_point():
        raise MiradaError(f"links of {name!r} are {tuple(link_E3.shape)}: expected whole numbers (links, 3)")
    text_E, from_E, to_E = link_E3.unbind(1)
    judges_E = text_E % 2 == 1
    if judges_E.all() or not judges_E.any():
        raise MiradaError(f"all links of {name!r} are in every other text: give links of several texts")
    is_found_ELH = (favourite_LBHN[:, text_E, :, from_E] == to_E[:, None, None]).float()
    chosen_LH = is_found_ELH[~judges_E].mean(0)
    layer, head = divmod(int(chosen_LH.flatten().argmax()), chosen_LH.shape[1])
    offsets_D = torch.tensor([d for d in range(-FARTHEST, FARTHEST + 1) if d])
    is_there_ED = ((to_E - from_E)[:, None] == offsets_D).float()
    best = int(is_there_ED[~judges_E].mean(0).argmax())
    return RelationScore(
        is_found_ELH.mean(0),
        layer,
        head,
        float(is_found_ELH[judges_E, layer, head].mean()),
        int(offsets_D[best]),
        float(is_there_ED[judges_E, best].mean()),
        int(judges_E.sum()),
    )
