"""Whole-batch tonal augmentation on float images in 0..1: (images_BCHW, generator) -> images_BCHW."""

from __future__ import annotations

import torch
import torch.nn.functional as F

_LUMA = (0.299, 0.587, 0.114)


def colour_jitter(images_BCHW: torch.Tensor, generator: torch.Generator, strength: float) -> torch.Tensor:
    """Brightness, contrast and saturation, each by a factor uniform in 1 ± strength; saturation only with 3 channels.

    All three are linear, so each image needs one matrix and one offset:
    y = b·(c·S x + (1 - c)·m), where S x = s·x + (1 - s)·luma(x) and m is the mean luma of the image.
    """
    B, C, H, W = images_BCHW.shape
    device = images_BCHW.device
    bright, contrast, saturation = (1 + strength * (torch.rand(3, B, 1, 1, generator=generator) * 2 - 1)).to(device)
    pixels = images_BCHW.reshape(B, C, H * W)
    means = pixels.mean(dim=2, keepdim=True)
    if C != 3:
        offset = bright * (1 - contrast) * means.mean(dim=1, keepdim=True)
        return (pixels * (bright * contrast)).add_(offset).clamp_(0, 1).view(B, C, H, W)
    luma = torch.tensor(_LUMA, device=device)
    matrix = saturation * torch.eye(3, device=device) + (1 - saturation) * luma.expand(3, 3)
    offset = bright * (1 - contrast) * (luma.view(1, 1, 3) @ means)
    mixed = torch.baddbmm(offset.expand(B, 3, 1), bright * contrast * matrix, pixels)
    return mixed.clamp_(0, 1).view(B, C, H, W)


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
