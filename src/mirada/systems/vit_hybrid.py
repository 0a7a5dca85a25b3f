"""Hybrid vision transformer: the patches of a ViT are the places of a CNN's feature map (Dosovitskiy 2020, 3.1).

    z_0 = [x_class; E f_1; …; E f_N] + E_pos,   f = CNN(x),   then as in a ViT

The published CNN is BiT's ResNet-50 without its last stage: convolutions with standardised weights, group norms.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attention, Concatenated, Learned, plane
from mirada.nn import (
    MLP,
    ClassToken,
    Encoder,
    EncoderLayer,
    ExtraTokens,
    LinearPatches,
    StochasticDepth,
    pre_norm,
    rising_rates,
)
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size
from mirada.systems.cnn import CHEAP_SIDE, channels_last, convolution, stage
from mirada.systems.registry import Card, one_of, register

GROUPS = 32


@register(
    Card(
        name="vit_hybrid",
        title="Hybrid ViT",
        summary="A convolutional network sees the details, a vision transformer on its feature map sees the whole.",
        paper="Dosovitskiy et al., An Image is Worth 16x16 Words, 2020; Kolesnikov et al., Big Transfer, 2020",
        inputs="image",
        parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "concatenated"},
        sizes={
            "nano": {"dim": 96, "depth": 2, "num_heads": 3, "mlp_ratio": 2.0, "width": 16},
            "micro": {"dim": 128, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "width": 24},
            "mini": {"dim": 192, "depth": 4, "num_heads": 6, "mlp_ratio": 2.0, "width": 32},
            "R50+B/16": {
                "dim": 768,
                "depth": 12,
                "num_heads": 12,
                "backbone": "resnet",
                "width": 64,
                "stages": (3, 4, 9),
            },
        },
        default_size="micro",
        when_to_use="Small data that deserve attention: the CNN learns fast what a ViT has to find out.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "width": 8},
    )
)
class ViTHybrid(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    backbone  "cnn": the first stages of `cnn`; "resnet": BiT's, with weights standardised and groups of channels normed
    width     channels of the backbone's first layer; later ones have more. A multiple of 32 for "resnet"
    stages    units in each stage of the backbone, each but the first of "resnet" with stride 2

    The transformer starts as `vit` does, the class token too. Convolutions start He normal, and the last γ of each unit
    of "resnet" at zero, as published, so that units start as the identity.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 128,
        depth: int = 3,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        backbone: str = "cnn",
        width: int = 24,
        stages: Sequence[int] = (0, 1),
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        size, self.num_extra = as_size(image_size), 1
        make = one_of("backbone", backbone, {"cnn": small_cnn, "resnet": bit_resnet})
        self.backbone, out_channels, self.patch_size = make(in_channels, width, stages, size)
        self.patches = LinearPatches(out_channels, dim, 1)
        self.extra = ExtraTokens(dim, self.num_extra)
        self.position = Learned(self.grid(torch.empty(0, in_channels, *size, device="meta")), dim, self.num_extra)
        self.dropout = Dropout(dropout)

        def layer(rate: float) -> EncoderLayer:
            return EncoderLayer(
                Attention(Concatenated(dim, num_heads)),
                MLP(dim, int(dim * mlp_ratio), nn.GELU(), dropout=dropout),
                pre_norm(
                    lambda: nn.LayerNorm(dim, eps=1e-6),
                    lambda: nn.Sequential(Dropout(dropout), StochasticDepth(rate)),
                ),
            )

        self.encoder = Encoder(map(layer, rising_rates(drop_path, depth)), nn.LayerNorm(dim, eps=1e-6))
        self.pooling = ClassToken()
        self.head = nn.Linear(dim, num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of the feature map: every stride rounds up."""
        return -(-images_BCHW.shape[-2] // self.patch_size), -(-images_BCHW.shape[-1] // self.patch_size)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the class token, (B, dim)."""
        x_BND, grid = self.patches(self.backbone(channels_last(images_BCHW)))
        places = plane(grid[0], grid[1], self.num_extra, device=x_BND.device)
        x_BND = self.position(self.extra(x_BND), places)
        return self.pooling(self.encoder(self.dropout(x_BND), places=places))


def small_cnn(in_channels: int, width: int, stages: Sequence[int], image_size: Size) -> tuple[nn.Module, int, int]:
    """The stages of `cnn`, each twice as wide and half as large as the one before; its channels out and its stride."""
    stride = 1
    while max(image_size) > CHEAP_SIDE * stride:
        stride *= 2
    widths = [width * 2**number for number in range(len(stages) + 1)]
    layers = [stage(widths[number], widths[number + 1], depth) for number, depth in enumerate(stages)]
    first = convolution(in_channels, width, stride)
    return nn.Sequential(first, *layers), widths[-1], stride * 2 ** len(stages)


def bit_resnet(in_channels: int, width: int, stages: Sequence[int], image_size: Size) -> tuple[nn.Module, int, int]:
    """BiT's residual network; its channels out and its stride."""
    return BiT(in_channels, width, stages), 4 * width * 2 ** (len(stages) - 1), 4 * 2 ** (len(stages) - 1)


class BiT(nn.Module):
    """7×7 with stride 2, pooling, stages of bottlenecks: ResNet-50's are (3, 4, 6, 3), the hybrid's (3, 4, 9).

    Called ResNetV2 where it was published, but its units activate after the sum, as the first ResNet's.
    """

    def __init__(self, in_channels: int, width: int, stages: Sequence[int]) -> None:
        super().__init__()
        self.stem = nn.Sequential(StandardisedConv(in_channels, width, 7, 2), nn.GroupNorm(GROUPS, width), nn.ReLU())
        widths = [4 * width * 2**number for number in range(len(stages))]
        self.stages = nn.ModuleList(
            nn.Sequential(
                Bottleneck(before, after, 1 if after == widths[0] else 2, is_first=True),
                *(Bottleneck(after, after) for _ in range(depth - 1)),
            )
            for before, after, depth in zip([width, *widths], widths, stages, strict=False)
        )

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.maps(images_BCHW)[-1]

    def maps(self, images_BCHW: Tensor) -> list[Tensor]:
        """Of stride 2, 4, 8, 16 …"""
        found = [channels_last(self.stem(images_BCHW))]
        # Below zero nothing is after ReLU, so zeros around the image never win.
        x_BCHW = F.max_pool2d(pad_for(found[0], 3, 2), 3, 2)
        for units in self.stages:
            x_BCHW = units(x_BCHW)
            found.append(x_BCHW)
        return found


class Bottleneck(nn.Module):
    """y = ReLU(shortcut(x) + GN(conv_1(ReLU(GN(conv_3(ReLU(GN(conv_1(x)))))))), all weights standardised."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1, is_first: bool = False) -> None:
        super().__init__()
        middle = out_channels // 4
        self.shortcut: nn.Module = nn.Identity()
        if is_first:
            self.shortcut = nn.Sequential(
                StandardisedConv(in_channels, out_channels, 1, stride), nn.GroupNorm(GROUPS, out_channels)
            )
        self.inner = nn.Sequential(
            StandardisedConv(in_channels, middle, 1),
            nn.GroupNorm(GROUPS, middle),
            nn.ReLU(),
            StandardisedConv(middle, middle, 3, stride),
            nn.GroupNorm(GROUPS, middle),
            nn.ReLU(),
            StandardisedConv(middle, out_channels, 1),
            last_norm := nn.GroupNorm(GROUPS, out_channels),
        )
        nn.init.zeros_(last_norm.weight)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        return F.relu(self.shortcut(x_BCHW) + self.inner(x_BCHW))


class StandardisedConv(nn.Conv2d):
    """A convolution with Ŵ = (W − mean) / √(var + ε), both over the inputs of one output channel (Qiao 2019).

    ε = 1e-8, as timm has it (the first code adds 1e-5 to the root). Zeros around the image are such that a side n
    becomes ⌈n/stride⌉; where their number is odd, one more is right and below.
    """

    eps = 1e-8

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, bias=False)
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, input: Tensor) -> Tensor:
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        weight = (self.weight - mean) * torch.rsqrt(variance + self.eps)
        return F.conv2d(pad_for(input, self.kernel_size[0], self.stride[0]), weight, stride=self.stride)


def pad_for(x_BCHW: Tensor, kernel_size: int, stride: int) -> Tensor:
    """Zeros around the image, so that ⌈n/stride⌉ windows fit a side of n."""
    if kernel_size == 1:
        return x_BCHW
    height, width = (max((-(-side // stride) - 1) * stride + kernel_size - side, 0) for side in x_BCHW.shape[-2:])
    return F.pad(x_BCHW, (width // 2, width - width // 2, height // 2, height - height // 2))
