"""Neighbourhoods of text by name, as a configuration writes them: "full", "window:8", "strided:16", "fixed:16:2"."""

from __future__ import annotations

from collections.abc import Callable

from mirada.core import Fixed, Mirrored, Neighbours, Strided, causal, full, window
from mirada.errors import MiradaError

# Rules that look both ways become causal by intersection; those of the Sparse Transformer look back by nature, and as
# they are they have a kernel of their own.
BOTH_WAYS: dict[str, Callable[..., Neighbours]] = {"full": full, "window": window}
BACKWARDS: dict[str, Callable[..., Neighbours]] = {
    "strided": Strided,
    "fixed": lambda block, num_summary=1: Fixed(block, num_summary),
}
FORMS = "full, window:<reach>, strided:<stride>, fixed:<block> or fixed:<block>:<summaries>"


def neighbours_named(name: str, *, is_causal: bool) -> Neighbours:
    """N_i of a name; causal, it is N_i ∩ {j : j ≤ i}, else it looks as far ahead as back."""
    kind, *numbers = name.split(":")
    try:
        rule = (BOTH_WAYS | BACKWARDS)[kind](*map(int, numbers))
    except (KeyError, TypeError, ValueError) as error:
        raise MiradaError(f"neighbours={name!r}: must be {FORMS}, with whole numbers") from error
    if kind in BACKWARDS:
        return rule if is_causal else rule | Mirrored(rule)
    return rule & causal() if is_causal else rule
