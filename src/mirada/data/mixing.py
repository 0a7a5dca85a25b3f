"""Mixup and CutMix: every image is combined with its neighbour in the batch, and so are the targets.

mixup   x = λ·x_i + (1 - λ)·x_j,   y = λ·y_i + (1 - λ)·y_j,   λ ~ Beta(a, a)       Zhang et al. 2017
cutmix  a box of area 1 - λ of x_i is replaced by that of x_j; λ is then the exact share kept     Yun et al. 2019
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from mirada.data.augment import random_boxes


def mixup(
    images_BCHW: torch.Tensor, targets_BK: torch.Tensor, generator: torch.Generator, alpha: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """One λ per image."""
    kept_B = beta(len(images_BCHW), alpha, generator).to(images_BCHW.device)
    mixed = torch.lerp(images_BCHW.roll(1, 0), images_BCHW, kept_B.view(-1, 1, 1, 1))
    return mixed, torch.lerp(targets_BK.roll(1, 0), targets_BK, kept_B.view(-1, 1))


def cutmix(
    images_BCHW: torch.Tensor, targets_BK: torch.Tensor, generator: torch.Generator, alpha: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """One box per image, of the image's aspect."""
    B, _, H, W = images_BCHW.shape
    side_B = torch.sqrt(1 - beta(B, alpha, generator))
    height, width = (side_B * H).round().long(), (side_B * W).round().long()
    box_BHW = random_boxes(height, width, (H, W), generator).to(images_BCHW.device)
    mixed, share_B1HW = torch.empty_like(images_BCHW), box_BHW[:, None].to(images_BCHW.dtype)
    # Shares of 0 and 1 are exact, and a lerp takes half the time of a choice.
    torch.lerp(images_BCHW[1:], images_BCHW[:-1], share_B1HW[1:], out=mixed[1:])
    torch.lerp(images_BCHW[:1], images_BCHW[-1:], share_B1HW[:1], out=mixed[:1])
    kept_B = (1 - height * width / (H * W)).to(images_BCHW.device)
    return mixed, torch.lerp(targets_BK.roll(1, 0), targets_BK, kept_B.view(-1, 1))


def as_distribution(targets: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Class numbers (B,) to one-hot (B, K); targets that are already (B, K) stay."""
    return F.one_hot(targets, num_classes).float() if targets.ndim == 1 else targets


def beta(count: int, alpha: float, generator: torch.Generator) -> torch.Tensor:
    """Beta(alpha, alpha) numbers; torch has no beta with a generator, so NumPy draws from a seed that torch gives."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.from_numpy(np.random.default_rng(seed).beta(alpha, alpha, count).astype(np.float32))
