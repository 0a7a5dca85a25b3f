"""Mixup and CutMix: every image is combined with its neighbour in the batch, and so are the targets.

mixup   x = λ·x_i + (1 - λ)·x_j,   y = λ·y_i + (1 - λ)·y_j,   λ ~ Beta(a, a)       Zhang et al. 2017
cutmix  a box of area 1 - λ of x_i is replaced by that of x_j; λ is then the exact share kept     Yun et al. 2019
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from mirada.data.augment import random_boxes

Shares = tuple[torch.Tensor, torch.Tensor]  # of the neighbour: in its pixels (B, 1, H, W) or (B, 1, 1, 1); whole (B,)


def blended(
    images_BCHW: torch.Tensor, targets_BK: torch.Tensor, share_B1HW: torch.Tensor, share_B: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each with so much of the one before it in the batch, the first with the last."""
    mixed, share_B1HW = torch.empty_like(images_BCHW), share_B1HW.to(images_BCHW)
    # Shares of 0 and 1 are exact, and a lerp takes half the time of a choice.
    torch.lerp(images_BCHW[1:], images_BCHW[:-1], share_B1HW[1:], out=mixed[1:])
    torch.lerp(images_BCHW[:1], images_BCHW[-1:], share_B1HW[:1], out=mixed[:1])
    return mixed, torch.lerp(targets_BK, targets_BK.roll(1, 0), share_B[:, None].to(targets_BK))


def mixup_shares(count: int, size: tuple[int, int], generator: torch.Generator, alpha: float) -> Shares:
    """1 − λ, one for each image."""
    share_B = 1 - beta(count, alpha, generator)
    return share_B.view(-1, 1, 1, 1), share_B


def cutmix_shares(count: int, size: tuple[int, int], generator: torch.Generator, alpha: float) -> Shares:
    """1 in a box, one for each image, of the image's aspect."""
    H, W = size
    side_B = torch.sqrt(1 - beta(count, alpha, generator))
    height, width = (side_B * H).round().long(), (side_B * W).round().long()
    return random_boxes(height, width, size, generator)[:, None].float(), height * width / (H * W)


def as_distribution(targets: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Class numbers (B,) to one-hot (B, K); targets that are already (B, K) stay."""
    return F.one_hot(targets, num_classes).float() if targets.ndim == 1 else targets


def beta(count: int, alpha: float, generator: torch.Generator) -> torch.Tensor:
    """Beta(alpha, alpha) numbers; torch has no beta with a generator, so NumPy draws from a seed that torch gives."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.from_numpy(np.random.default_rng(seed).beta(alpha, alpha, count).astype(np.float32))
