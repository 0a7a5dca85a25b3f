"""One long text: inputs are N tokens from anywhere in it, targets the N tokens one further.

inputs_bn = token[o_b + n],   targets_bn = token[o_b + n + 1],   o_b drawn from 0 … T − N − 1
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.data.order import step_generator
from mirada.data.text.numbered_batches import NumberedBatches, require_positive
from mirada.errors import MiradaError


class StreamBatches(NumberedBatches):
    """An epoch sees as many tokens as the text has, though not each of them once. The rows are the offsets."""

    def __init__(self, tokens: Tensor, *, batch_size: int, length: int, seed: int = 0) -> None:
        super().__init__(seed)
        require_positive(batch_size=batch_size, length=length)
        if len(tokens) <= length:
            raise MiradaError(
                f"the text has {len(tokens)} tokens, expected more than the {length} of one window; "
                f"give more text or a smaller length."
            )
        self.tokens, self.batch_size, self.length = tokens, batch_size, length

    def __len__(self) -> int:
        return max(1, len(self.tokens) // (self.batch_size * self.length))

    def batch(self, epoch: int, step: int) -> Batch:
        generator = step_generator(self.seed, epoch, step)
        offset = torch.randint(len(self.tokens) - self.length, (self.batch_size,), generator=generator)
        return windows(self.tokens, offset, self.length)


def stream_evaluation(tokens: Tensor, *, batch_size: int, length: int) -> Iterator[Batch]:
    """Consecutive windows: every token but the first is asked for once. The last window may be shorter, and is then a
    batch of its own."""
    require_positive(batch_size=batch_size, length=length)
    num_asked = len(tokens) - 1
    whole = torch.arange(0, max(0, num_asked - length + 1), length)
    for offset in whole.split(batch_size) if len(whole) else ():
        yield windows(tokens, offset, length)
    if num_asked > 0 and (rest := num_asked % length):
        yield windows(tokens, torch.tensor([num_asked - rest]), rest)


def windows(tokens: Tensor, offset_B: Tensor, length: int) -> Batch:
    token_BN = tokens[offset_B[:, None] + torch.arange(length + 1)].long()
    return Batch(token_BN[:, :-1].contiguous(), token_BN[:, 1:].contiguous(), offset_B)
