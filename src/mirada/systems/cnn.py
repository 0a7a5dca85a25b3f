"""A small convolutional network that learns fast on a CPU: the opponent that a transformer has to beat.

    x_0 = g(BN(conv(x))),   x_s = unit(… g(BN(maxpool(conv(x_{s−1}))))),   unit(x) = x + g(BN(conv(g(BN(conv(x))))))

In the family of ResNet-9 and airbench (Jordan 2024): few wide 3×3 layers, each followed by batch normalisation, and
pooling after the convolution that widens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size
from mirada.systems.registry import Card, register

CHEAP_SIDE = 48  # up to this many pixels the first layer sees every pixel


@register(
    Card(
        name="cnn",
        title="Small CNN",
        summary="Three stages of 3×3 convolutions with batch normalisation, residuals and global pooling.",
        paper="Jordan, 94% on CIFAR-10 in 3.29 Seconds on a Single GPU, 2024 (the family; narrower here)",
        inputs="image",
        parts={},
        sizes={
            "nano": {"dim": 16, "depth": 0},
            "micro": {"dim": 24, "depth": 1},
            "mini": {"dim": 32, "depth": 1},
            "base": {"dim": 64, "depth": 1},
        },
        default_size="micro",
        when_to_use="The baseline beside every transformer, and the better choice on very little data or time.",
        cannot={"recording": "it has no attention"},
        tiny={"dim": 8, "depth": 1},
        learning_rate=4e-3,
        optimiser="muon",
    )
)
class CNN(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dim      channels of the first layer; the three stages have 2, 4 and 4 times as many
    depth    residual units in the second and third stage

    Larger images than 48 px are halved by the first layer (stride 2; 4 above 96 px …), so that the cost stays that of a
    small image. Weights start He normal, biases zero.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 24,
        depth: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        stride = 1
        while max(as_size(image_size)) > CHEAP_SIDE * stride:
            stride *= 2
        self.stem = convolution(in_channels, dim, stride)
        self.stages = nn.Sequential(
            stage(dim, 2 * dim, 0), stage(2 * dim, 4 * dim, depth), stage(4 * dim, 4 * dim, depth)
        )
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(4 * dim, num_classes)
        nn.init.zeros_(self.head.bias)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(images_BCHW)))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the mean of every channel, (B, 4·dim)."""
        return self.stages(channels_last(self.stem(channels_last(images_BCHW)))).mean((-2, -1))


def channels_last(images_BCHW: Tensor) -> Tensor:
    """The same images with the channels of a pixel side by side in memory: on a CPU convolutions train 1.7 × faster.

    Later layers keep the layout of their input; the weights stay as they are, ready to be saved. A single channel has
    no layout that a convolution could keep, so what comes out of the first layer is laid out once more.
    """
    return images_BCHW.contiguous(memory_format=torch.channels_last)


class Residual(nn.Module):
    """y = x + inner(x)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x_BCHW: Tensor) -> Tensor:
        return x_BCHW + self.inner(x_BCHW)


def convolution(
    in_channels: int, out_channels: int, stride: int = 1, pool: bool = False, size: int = 3
) -> nn.Sequential:
    conv = nn.Conv2d(in_channels, out_channels, size, stride, padding=max(1, (size - stride) // 2), bias=False)
    nn.init.kaiming_normal_(conv.weight)
    halving = [nn.MaxPool2d(2, ceil_mode=True)] if pool else []
    return nn.Sequential(conv, *halving, nn.BatchNorm2d(out_channels), nn.ReLU())


def stage(in_channels: int, out_channels: int, depth: int) -> nn.Sequential:
    units = [
        Residual(nn.Sequential(convolution(out_channels, out_channels), convolution(out_channels, out_channels)))
        for _ in range(depth)
    ]
    return nn.Sequential(convolution(in_channels, out_channels, pool=True), *units)
