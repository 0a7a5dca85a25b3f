"""The way back up of a U: twice the side, beside what was seen on the way down. Shape letters: B, C channels, H, W."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def two_convolutions(in_channels: int, out_channels: int) -> nn.Sequential:
    """2 × [3×3 convolution, batch norm, ReLU]."""
    return nn.Sequential(
        *convolution_norm_relu(in_channels, out_channels), *convolution_norm_relu(out_channels, out_channels)
    )


def convolution_norm_relu(in_channels: int, out_channels: int) -> nn.Sequential:
    """3×3, without the bias that the norm has."""
    convolution = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(out_channels), nn.ReLU())


class UpBlock(nn.Module):
    """y = two convolutions of [bilinear ×2 of x; skip]."""

    def __init__(self, in_channels: int, skip_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convolutions = two_convolutions(in_channels + skip_channels, out_channels)

    def forward(self, x_BCHW: Tensor, skip_BCHW: Tensor | None) -> Tensor:
        x_BCHW = F.interpolate(x_BCHW, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.convolutions(x_BCHW if skip_BCHW is None else torch.cat([x_BCHW, skip_BCHW], dim=1))


def padded_to(images_BCHW: Tensor, multiple: int) -> Tensor:
    """Zeros right and below, so that both sides are whole multiples."""
    height, width = images_BCHW.shape[-2:]
    return F.pad(images_BCHW, (0, -width % multiple, 0, -height % multiple))
