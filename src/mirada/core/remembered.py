"""What depends on sizes only, such as the mask of windows on a grid, is made once and kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")

MAX_KEPT = 64  # sizes; a mask of 56 × 56 cells in windows of 7 is 150 kB


def remembered(make: Callable[..., Made]) -> Callable[..., Made]:
    """make(device, *sizes) becomes a function of (like, *sizes), with `like` a tensor on that device.

    What it gives is shared: nobody may write to it.
    """
    kept = lru_cache(MAX_KEPT)(make)

    def of_sizes(like: Tensor, *sizes: object) -> Made:
        # A traced model makes its own: tensors of one trace mean nothing to another.
        if torch.compiler.is_compiling() or type(like) not in (Tensor, torch.nn.Parameter):
            return make(like.device, *sizes)
        # Made by a prediction and used by a training step, they must be good for gradients.
        with torch.inference_mode(False):
            return kept(like.device, *sizes)

    return of_sizes
