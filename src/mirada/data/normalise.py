"""x' = (x / 255 - mean) / std, per channel, with statistics of the training images only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Normalisation:
    """mean and std of each channel on the scale 0..1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def apply(self, images: torch.Tensor) -> torch.Tensor:
        """uint8, or float in 0..1, (B, C, H, W) to normalised float32; one pass."""
        mean, std = self._columns(images.device)
        if images.dtype == torch.uint8:
            return images.to(torch.float32).mul_(1 / (255 * std)).sub_(mean / std)
        return (images * (1 / std)).sub_(mean / std)

    def undo(self, images: torch.Tensor) -> torch.Tensor:
        """Back to float in 0..1, for pictures."""
        mean, std = self._columns(images.device)
        return (images * std + mean).clamp(0, 1)

    def _columns(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float32, device=device)
        return mean.view(1, -1, 1, 1), std.view(1, -1, 1, 1)


def normalisation_of(batches: Iterable[torch.Tensor]) -> Normalisation:
    """Exact statistics of uint8 batches (B, C, H, W), from one histogram per channel."""
    counts = np.zeros((1, 256), dtype=np.int64)
    for images in batches:
        planes = images.transpose(0, 1).flatten(1)
        counts = counts + torch.stack([torch.bincount(plane, minlength=256) for plane in planes]).numpy()
    shares = counts / counts.sum(axis=1, keepdims=True)
    values = np.arange(256) / 255
    mean = shares @ values
    std = np.sqrt(np.maximum((shares * (values - mean[:, None]) ** 2).sum(axis=1), 0))
    std = np.where(std < 1e-3, 1.0, std)  # a constant channel carries nothing and must not explode
    return Normalisation(tuple(mean.tolist()), tuple(std.tolist()))
