"""Compact convolutional transformer: pooled convolutions make the tokens, a learned query reads them (Hassani 2021).
The opponent of benchmarks/time_to_accuracy.py.

z_0 = MaxPool(ReLU(… MaxPool(ReLU(x * W_1)) * W_n)) + E_pos,   z_l = layer_l(z_{l−1}),
z = LN(z_depth),   y = head(softmax(z w)ᵀ z)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated, Learned, plane
from mirada.nn import MLP, Encoder, SequencePooling, StochasticDepth, rising_rates
from mirada.nn.patches import Size, as_size
from mirada.nn.residual import PreNorm
from mirada.systems.deepvit import start_small
from mirada.systems.registry import Card, cards, register

FIRST_WIDTH = 64  # of every convolution but the last


class CCT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    num_convs          3×3 convolutions, each with a max pooling that halves the sides, rounded up
    attention_dropout  of the weights; `dropout` is that of the positions, the projections and the MLP

    Started as in the published code: convolutions He normal, other weights normal(0, 0.02), positions normal(0, 0.2),
    biases zero.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 128,
        depth: int = 2,
        num_heads: int = 2,
        mlp_ratio: float = 1.0,
        num_convs: int = 2,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_size = 2**num_convs
        widths = [in_channels, *(FIRST_WIDTH,) * (num_convs - 1), dim]
        self.convolutions = nn.Sequential(*(pooled_convolution(*pair) for pair in itertools.pairwise(widths)))
        blank = torch.empty(0, in_channels, *as_size(image_size), device="meta")
        self.position = Learned(self.grid(blank), dim)
        nn.init.trunc_normal_(self.position.weight, std=0.2)
        self.dropout = nn.Dropout(dropout)

        def layer(rate: float) -> CompactLayer:
            return CompactLayer(
                Attention(Concatenated(dim, num_heads, bias=False, out_bias=True), dropout=attention_dropout),
                MLP(dim, int(dim * mlp_ratio), dropout=dropout),
                dim,
                lambda: nn.Sequential(nn.Dropout(dropout), StochasticDepth(rate)),
            )

        self.encoder = Encoder(map(layer, rising_rates(drop_path, depth)), nn.LayerNorm(dim))
        self.pooling = SequencePooling(dim)
        self.head = nn.Linear(dim, num_classes)
        for part in (self.encoder, self.head):
            part.apply(start_small)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of tokens of such images."""
        height, width = images_BCHW.shape[-2:]
        return -(-height // self.patch_size), -(-width // self.patch_size)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: (B, dim)."""
        features_BDHW = self.convolutions(images_BCHW.contiguous(memory_format=torch.channels_last))
        places = plane(features_BDHW.shape[-2], features_BDHW.shape[-1], device=images_BCHW.device)
        x_BND = self.dropout(self.position(features_BDHW.flatten(2).mT, places))
        return self.pooling(self.encoder(x_BND, places=places))


class CompactLayer(nn.Module):
    """h = LN(x + A(LN(x))),  y = h + MLP(h): as in the published code, the direct path is normed in between too."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, dim: int, branch: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.attention = PreNorm(attention, nn.LayerNorm(dim), branch())
        self.norm = nn.LayerNorm(dim)
        self.mlp = PreNorm(mlp, nn.Identity(), branch())

    def forward(self, x_BND: Tensor, **context: Any) -> Tensor:
        return self.mlp(self.norm(self.attention(x_BND, **context)))


def pooled_convolution(in_width: int, width: int) -> nn.Sequential:
    convolution = nn.Conv2d(in_width, width, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight)
    return nn.Sequential(convolution, nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))


def make_known() -> None:
    """As the system "cct" of this process: trainings take systems by name."""
    if "cct" not in cards():
        card = Card(
            name="cct",
            title="Compact Convolutional Transformer",
            summary="Convolutions with max pooling make the tokens; a learned query reads them.",
            paper="Hassani et al., Escaping the Big Data Paradigm with Compact Transformers, 2021",
            inputs="image",
            parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "concatenated"},
            sizes={"2/3x2": {}},
            default_size="2/3x2",
            when_to_use="As a published reference.",
        )
        register(card)(CCT)
