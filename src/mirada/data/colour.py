"""Whole-batch tonal augmentation on float images in 0..1: (images_BCHW, generator) -> images_BCHW."""

from __future__ import annotations

import torch
import torch.nn.functional as F

_LUMA = (0.299, 0.587, 0.114)


def colour_jitter(images_BCHW: torch.Tensor, generator: torch.Generator, strength: float) -> torch.Tensor:
    """Brightness, contrast and saturation, each by a factor uniform in 1 ± strength; saturation only with 3 channels.

    y = b·(c·(s·x + (1 - s)·luma(x)) + (1 - c)·m), where m is the mean luma of the image. In place.
    """
    B, C = images_BCHW.shape[:2]
    factors = 1 + strength * (torch.rand(3, B, 1, 1, 1, generator=generator) * 2 - 1)
    bright_B111, contrast_B111, saturation_B111 = factors.to(images_BCHW.device)
    if C != 3:
        offset_B111 = bright_B111 * (1 - contrast_B111) * images_BCHW.mean((1, 2, 3), keepdim=True)
        return images_BCHW.mul_(bright_B111 * contrast_B111).add_(offset_B111).clamp_(0, 1)
    red, green, blue = images_BCHW.split(1, dim=1)
    luma_B1HW = (red * _LUMA[0]).add_(green, alpha=_LUMA[1]).add_(blue, alpha=_LUMA[2])
    offset_B111 = bright_B111 * (1 - contrast_B111) * luma_B1HW.mean((2, 3), keepdim=True)
    grey_B1HW = luma_B1HW.mul_(bright_B111 * contrast_B111 * (1 - saturation_B111)).add_(offset_B111)
    return images_BCHW.mul_(bright_B111 * contrast_B111 * saturation_B111).add_(grey_B1HW).clamp_(0, 1)


def random_tone(images_BCHW: torch.Tensor, generator: torch.Generator, probability: float) -> torch.Tensor:
    """Give a random part of the images one operation each, of random strength (after RandAugment, Cubuk 2019)."""
    B = len(images_BCHW)
    chosen, which, amount = torch.rand(3, B, generator=generator)
    which = (which * len(TONES)).long()
    out = images_BCHW.clone()
    for number, tone in enumerate(TONES):
        rows = ((chosen < probability) & (which == number)).nonzero()[:, 0]
        if len(rows):
            on_device = rows.to(out.device)
            part = images_BCHW.index_select(0, on_device)
            out.index_copy_(0, on_device, tone(part, amount[rows].view(-1, 1, 1, 1).to(out.device)))
    return out


def auto_contrast(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Stretch each channel towards the full range, by `amount` of the way."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    full = (images - low) / (high - low).clamp(min=1e-3)
    return torch.lerp(images, full, amount).clamp_(0, 1)


def posterise(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Keep 2 to 6 bits per channel."""
    levels = 2 ** (6 - 4 * amount).round() - 1
    return (images * levels).round() / levels


def solarise(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Invert what is brighter than a threshold between 1 and 0.4."""
    return torch.where(images > 1 - 0.6 * amount, 1 - images, images)


def sharpen_or_blur(images: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Away from (amount over 1/2) or towards (under) a 3 x 3 mean, by up to 0.9 of the difference."""
    smooth = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return torch.lerp(images, smooth, 0.9 * (1 - 2 * amount)).clamp_(0, 1)


TONES = (auto_contrast, posterise, solarise, sharpen_or_blur)
