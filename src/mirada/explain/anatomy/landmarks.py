"""What share of its attention a head gives to tokens that are special to the query (Clark 2019, section 3.2).

    s_h = mean over inputs and queries i of  Σ_{j ∈ S_i} α_ij

    extra      S_i: tokens that lie nowhere, such as the class token
    self       S_i = {i}
    first      S_i = {1}            in texts, like the two that follow; a text may begin with a class token
    previous   S_i = {i − 1}
    next       S_i = {i + 1}

Queries are the tokens that have a place; those without such a key (nothing is before the first token) are left out.

Shape letters: B batch, H heads, N queries, M keys.
"""

from __future__ import annotations

from torch import Tensor

from mirada.explain.looks import Look

STEPS = {"self": 0, "previous": -1, "next": 1}


def attention_to(look: Look) -> dict[str, Tensor]:
    """(B, H) for each landmark that there is."""
    weights_BHNM = look.weights_BHNM[:, :, look.queries.num_extra :].double()
    num_extra = look.keys.num_extra
    found = {"extra": weights_BHNM[..., :num_extra].sum(-1).mean(-1)} if num_extra else {}
    if look.kind == "cross" or look.queries.size != look.keys.size:
        return found
    placed_BHNN = weights_BHNM[..., num_extra:]
    is_text, length = len(look.keys.size) == 1, placed_BHNN.shape[-1]
    if is_text and length > 1:
        found["first"] = placed_BHNN[:, :, 1:, 0].mean(-1)
    for name, step in STEPS.items():
        if step == 0 or (is_text and length > 1):
            found[name] = placed_BHNN.diagonal(step, -2, -1).mean(-1)
    return found
