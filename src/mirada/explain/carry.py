"""From the tokens of one layer to those of the layer below, where layers have tokens of different sizes.

    r′_x = r_q / |{x : x lies in q}|      for the fine cell x that lies in the coarse cell q

A grid that is coarser by a stride s has ⌈n/s⌉ cells on an axis; one that is larger was padded right and below. What
lies in the padding, and a token that the layer below has not (a class token that joins late, a query that pools), has
no origin: it carries nothing of the input.

Shape letters: B batch, R readers, N tokens above, X tokens below.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.errors import MiradaError
from mirada.explain.looks import Tokens


def carried(r_BRN: Tensor, above: Tokens, below: Tokens) -> Tensor:
    """(B, R, X): what the tokens below have of the relevance of those above."""
    parent_X = parents(above, below).to(r_BRN.device)
    has_parent_X = parent_X >= 0
    found_X = parent_X.clamp(min=0)
    count_N = torch.zeros(len(above), dtype=r_BRN.dtype, device=r_BRN.device)
    count_N.index_add_(0, found_X, has_parent_X.to(r_BRN.dtype))
    return (r_BRN / count_N.clamp(min=1)).index_select(-1, found_X) * has_parent_X


def origins(above: Tokens, below: Tokens) -> Tensor:
    """(N,) True for tokens that come from the layer below."""
    parent_X = parents(above, below)
    has_origin_N = torch.zeros(len(above), dtype=torch.bool)
    has_origin_N[parent_X[parent_X >= 0]] = True
    return has_origin_N


def parents(above: Tokens, below: Tokens) -> Tensor:
    """(X,) the token above in which each token below lies, −1 for none."""
    if above == below or (1 < len(above) == len(below)):
        return torch.arange(len(below))
    parent_X = torch.full((len(below),), -1)
    shared = min(above.num_extra, below.num_extra)
    parent_X[:shared] = torch.arange(shared)
    if above.size == (1,):  # a learned query that pools all others
        return parent_X
    if len(above.size) != len(below.size) or len(above.size) == 1:
        raise MiradaError(
            f"tokens {_words(above)} after tokens {_words(below)}: where the ones come from cannot be told, so layers "
            "cannot be followed to the input; ask for the attention of one layer, integrated gradients or occlusion"
        )
    index = torch.zeros((), dtype=torch.long)
    for num_above, num_below in zip(above.size, below.size, strict=True):
        cell = torch.arange(num_below) // stride(num_above, num_below)
        index = index[..., None] * num_above + cell
    parent_X[below.num_extra :] = above.num_extra + index.flatten()
    return parent_X


def stride(num_above: int, num_below: int) -> int:
    """The smallest s with ⌈below/s⌉ ≤ above."""
    return -(-num_below // num_above)


def _words(tokens: Tokens) -> str:
    size = " × ".join(map(str, tokens.size))
    return size if not tokens.num_extra else f"{tokens.num_extra} + {size}"
