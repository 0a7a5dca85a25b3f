"""Residual network: each block learns what to add to its input (He 2015).

    y = ReLU(x + BN(conv(ReLU(BN(conv(x))))))

Basic blocks of two 3×3 convolutions: the networks of 18 and 34 layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size
from mirada.systems.cnn import channels_last
from mirada.systems.registry import Card, one_of, register


@register(
    Card(
        name="resnet",
        title="ResNet",
        summary="Four stages of residual blocks of 3×3 convolutions, each half as large and twice as wide.",
        paper="He et al., Deep Residual Learning for Image Recognition, 2015",
        inputs="image",
        parts={},
        sizes={
            "18": {"depths": (2, 2, 2, 2), "stem": "imagenet"},
            "34": {"depths": (3, 4, 6, 3), "stem": "imagenet"},
            "18-cifar": {"depths": (2, 2, 2, 2), "stem": "cifar"},
            "34-cifar": {"depths": (3, 4, 6, 3), "stem": "cifar"},
        },
        default_size="18-cifar",
        when_to_use="A strong baseline where there are hours or a GPU; the cifar stem below about 64 px.",
        cannot={"recording": "it has no attention"},
        tiny={"dim": 8, "depths": (1, 1), "stem": "cifar"},
        learning_rate=2e-3,
    )
)
class ResNet(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dim      channels of the first stage, doubled by each further one
    depths   blocks per stage
    stem     "imagenet": 7×7 with stride 2, then pooling: a sixteenth of the pixels; "cifar": 3×3, every pixel kept

    Weights start He normal (fan out); the last γ of each block starts at zero, so that blocks start as the identity
    (Goyal 2017, section 5.1). `image_size` changes nothing: the layers serve any size.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 64,
        depths: Sequence[int] = (2, 2, 2, 2),
        stem: str = "cifar",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.stem = one_of("stem", stem, {"imagenet": imagenet_stem, "cifar": cifar_stem})(in_channels, dim)
        widths = [dim * 2**stage for stage in range(len(depths))]
        self.stages = nn.Sequential(
            *(
                nn.Sequential(Block(before, width, stride), *(Block(width, width) for _ in range(depth - 1)))
                for before, width, stride, depth in zip(
                    [dim, *widths], widths, [1] + [2] * (len(depths) - 1), depths, strict=False
                )
            )
        )
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(widths[-1], num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(images_BCHW)))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the mean of every channel, (B, dim of the last stage)."""
        return self.stages(channels_last(self.stem(channels_last(images_BCHW)))).mean((-2, -1))


class Block(nn.Module):
    """y = ReLU(shortcut(x) + BN(conv(ReLU(BN(conv(x)))))); the shortcut is a 1×1 convolution if the shape changes."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), nn.BatchNorm2d(out_channels)
            )
        self.inner = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
            last_norm := nn.BatchNorm2d(out_channels),
        )
        nn.init.zeros_(last_norm.weight)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        return F.relu(self.shortcut(x_BCHW) + self.inner(x_BCHW))


def imagenet_stem(in_channels: int, dim: int) -> nn.Sequential:
    conv = nn.Conv2d(in_channels, dim, 7, stride=2, padding=3, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(dim), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))


def cifar_stem(in_channels: int, dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(in_channels, dim, 3, padding=1, bias=False), nn.BatchNorm2d(dim), nn.ReLU())
