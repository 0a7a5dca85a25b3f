"""BERT's masked tokens: some tokens are hidden in the input and asked for in the target (Devlin 2019, section 3.1).

This replaces tokens; it is not an attention mask. Who may look at whom is `mirada.core.neighbours`.

Shape letters: B batch, N tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

IGNORED = -100  # the target of tokens that are not asked for, which cross-entropy leaves out


def mask_tokens(
    tokens_BN: Tensor,
    *,
    is_special_BN: Tensor,
    mask_id: int,
    num_ordinary: int,
    generator: torch.Generator,
    share: float = 0.15,
) -> tuple[Tensor, Tensor]:
    """Inputs and targets: of each row max(1, round(share · n)) of its n ordinary tokens are asked for; of these 80 %
    become `mask_id`, 10 % any token below `num_ordinary`, and 10 % stay. Special tokens are never asked for.
    """
    ordinary_BN = ~is_special_BN
    length_B = ordinary_BN.sum(1)
    wanted_B = torch.where(length_B > 0, (share * length_B).round().clamp(min=1), 0)
    # A random order of the ordinary tokens of each row: the first `wanted` are asked for.
    draw_BN = torch.rand(tokens_BN.shape, generator=generator).masked_fill(is_special_BN, 2.0)
    is_asked_BN = draw_BN.argsort(1).argsort(1) < wanted_B[:, None]
    fate_BN = torch.rand(tokens_BN.shape, generator=generator)
    other_BN = torch.randint(0, num_ordinary, tokens_BN.shape, generator=generator)
    inputs_BN = torch.where(is_asked_BN & (fate_BN < 0.8), mask_id, tokens_BN)
    inputs_BN = torch.where(is_asked_BN & (fate_BN >= 0.9), other_BN, inputs_BN)
    return inputs_BN, torch.where(is_asked_BN, tokens_BN, IGNORED)
