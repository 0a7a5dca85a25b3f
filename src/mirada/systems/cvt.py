"""Convolutional vision transformer: convolutions make the tokens of each stage and the queries, keys and values.

    q, k, v = W (BN(depthwise_3(x)))  on the grid, keys and values with stride 2;   logits = q kᵀ / √D

(Wu 2021.) Three stages of ever fewer and wider tokens; a class token joins in the last. Convolutions know where tokens
are, so there are no positions. The logits are divided by √D, D the width of all heads, as in the published code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from mirada.core import Attend, Concatenated, Places, ScaledDot, plane
from mirada.errors import MiradaError
from mirada.nn import MLP, Encoder, EncoderLayer, ExtraTokens, StochasticDepth, pre_norm, rising_rates
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size, fit
from mirada.nn.pooled_attention import halved
from mirada.systems.cnn import channels_last
from mirada.systems.registry import Card, register

KEY_STRIDE = 2  # keys and values are convolved to a quarter of the tokens
MAX_FIRST_TOKENS = 256  # 32 px → 16 × 16 tokens, 64 px too
PUBLISHED: dict[str, object] = {"patch_size": 4, "mlp_ratio": 4.0}


@register(
    Card(
        name="cvt",
        title="Convolutional Vision Transformer",
        summary="Three stages of attention whose tokens, queries, keys and values come from convolutions.",
        paper="Wu et al., CvT: Introducing Convolutions to Vision Transformers, 2021",
        inputs="image",
        parts={
            "score": "scaled dot, by the width of all heads",
            "neighbours": "full, keys on every second row and column",
            "position": "none: convolutions know it",
            "heads": "concatenated, after depthwise convolutions",
        },
        sizes={
            "nano": {"dims": (32, 64, 96), "depths": (1, 2, 3), "num_heads": (1, 2, 3), "mlp_ratio": 2.0},
            "micro": {"dims": (48, 96, 144), "depths": (1, 2, 4), "num_heads": (1, 2, 3), "mlp_ratio": 2.0},
            "13": {"dims": (64, 192, 384), "depths": (1, 2, 10), "num_heads": (1, 3, 6), **PUBLISHED},
            "21": {"dims": (64, 192, 384), "depths": (1, 4, 16), "num_heads": (1, 3, 6), **PUBLISHED},
            "W24": {"dims": (192, 768, 1024), "depths": (2, 2, 20), "num_heads": (3, 12, 16), **PUBLISHED},
        },
        default_size="micro",
        when_to_use="Where a plain ViT lacks data: convolutions bring locality, attention the view of the whole.",
        cannot={"learns_with_every_parameter": "the last layer's query convolution serves tokens that nobody reads"},
        tiny={"dims": (8, 16, 24), "depths": (1, 1, 2), "num_heads": (1, 2, 3), "mlp_ratio": 2.0, "patch_size": 2},
    )
)
class CvT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dims, depths, num_heads   of each stage
    patch_size   stride P of the first stage, whose convolution has the side 2P − 1 (published: 4 and 7); None: the
                 power of two that gives at most 256 tokens at `image_size`. Further stages: 3×3 with stride 2

    Sides that are no multiple of P are padded with zeros right and below, so that no pixel is lost; the published
    convolution drops up to two. Started as there: weights normal(0, 0.02), biases zero, convolutions as torch does.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dims: Sequence[int] = (64, 192, 384),
        depths: Sequence[int] = (1, 2, 10),
        num_heads: Sequence[int] = (1, 3, 6),
        mlp_ratio: float = 4.0,
        patch_size: int | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        if not len(dims) == len(depths) == len(num_heads):
            raise MiradaError(f"dims={dims}, depths={depths}, num_heads={num_heads}: give as many numbers in each")
        self.patch_size = first_stride(as_size(image_size)) if patch_size is None else patch_size
        self.num_extra = 1
        strides = [self.patch_size] + [2] * (len(dims) - 1)
        is_last = [False] * (len(dims) - 1) + [True]
        before = [in_channels, *dims]
        self.stages = nn.ModuleList(
            Stage(
                TokenEmbedding(before[s], dims[s], strides[s]),
                ExtraTokens(dims[s], self.num_extra) if is_last[s] else None,
                (layer(dims[s], num_heads[s], mlp_ratio, dropout, rate) for rate in rising_rates(drop_path, depths[s])),
                dropout,
            )
            for s in range(len(dims))
        )
        self.norm = nn.LayerNorm(dims[-1])
        self.head = nn.Linear(dims[-1], num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of the keys in the last stage: where its attention looks."""
        halvings = len(self.stages)  # one before each stage but the first, one for the keys
        height, width = (-(-side // self.patch_size) for side in images_BCHW.shape[-2:])
        return -(-height // 2**halvings), -(-width // 2**halvings)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the class token, (B, width of the last stage)."""
        x_BCHW = fit(images_BCHW, self.patch_size, "pad")
        for stage in self.stages:
            x_BCHW, extra_BXD = stage(x_BCHW)
        return self.norm(extra_BXD[:, 0])


def first_stride(image_size: Size) -> int:
    """The smallest power of two that makes at most 256 tokens of the image."""
    stride = 1
    while -(-image_size[0] // stride) * -(-image_size[1] // stride) > MAX_FIRST_TOKENS:
        stride *= 2
    return stride


class TokenEmbedding(nn.Module):
    """z = LN(conv(x)), a convolution of side 2S − 1 with stride S: tokens overlap."""

    def __init__(self, in_channels: int, dim: int, stride: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(in_channels, dim, 2 * stride - 1, stride, padding=stride // 2)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x_BCHW: Tensor) -> tuple[Tensor, Size]:
        x_BDHW = self.projection(x_BCHW)
        return self.norm(x_BDHW.flatten(2).mT), (x_BDHW.shape[-2], x_BDHW.shape[-1])


class Stage(nn.Module):
    """A grid into fewer tokens, through layers, and back into a grid and the extra tokens in front of it."""

    def __init__(
        self, embedding: TokenEmbedding, extra: ExtraTokens | None, layers: Iterable[nn.Module], dropout: float
    ) -> None:
        super().__init__()
        self.embedding, self.extra = embedding, extra
        self.dropout = Dropout(dropout)
        self.encoder = Encoder(layers)

    def forward(self, x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        x_BND, grid = self.embedding(x_BCHW)
        x_BND = self.dropout(x_BND)
        num_extra = 0
        if self.extra is not None:
            x_BND, num_extra = self.extra(x_BND), self.extra.num_extra
        x_BND = self.encoder(x_BND, places=plane(grid[0], grid[1], num_extra, device=x_BND.device))
        return x_BND[:, num_extra:].mT.unflatten(2, grid), x_BND[:, :num_extra]


def layer(dim: int, num_heads: int, mlp_ratio: float, dropout: float, rate: float) -> EncoderLayer:
    return EncoderLayer(
        ConvAttention(dim, num_heads),
        MLP(dim, int(dim * mlp_ratio), nn.GELU(), dropout=dropout),
        pre_norm(lambda: nn.LayerNorm(dim), lambda: nn.Sequential(Dropout(dropout), StochasticDepth(rate))),
    )


class ConvAttention(nn.Module):
    """Attention between q, k and v that come from depthwise convolutions of the grid; extra tokens pass by these."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.heads = Concatenated(dim, num_heads)
        self.attend = Attend(ScaledDot(dim**-0.5))
        self.around_q, self.around_k, self.around_v = (
            GridConvolution(dim, stride) for stride in (1, KEY_STRIDE, KEY_STRIDE)
        )

    def forward(self, x_BND: Tensor, *, places: Places) -> Tensor:
        q = self.heads.queries(self.around_q(x_BND, places))
        k = self.heads.keys(self.around_k(x_BND, places))
        v = self.heads.values(self.around_v(x_BND, places))
        rows, columns = places.size
        coarser = plane(*halved((rows, columns), KEY_STRIDE), places.num_extra, device=x_BND.device)
        return self.heads.join(self.attend(q, k, v, queries=places, keys=coarser))


class GridConvolution(nn.Module):
    """BN(depthwise_3(x)) of the tokens that lie on the grid, after the extra tokens as they are."""

    def __init__(self, dim: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(dim, dim, 3, stride, padding=1, groups=dim, bias=False)
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        extra_BXD, grid_BND = x_BND[:, : places.num_extra], x_BND[:, places.num_extra :]
        grid_BDHW = grid_BND.mT.unflatten(2, places.size)
        # As tokens come: in another layout, torch 2.13 gives a wrong gradient for a batch of one.
        around_BDHW = self.norm(channels_last(self.convolution(grid_BDHW)))
        return torch.cat([extra_BXD, around_BDHW.flatten(2).mT], dim=1)
