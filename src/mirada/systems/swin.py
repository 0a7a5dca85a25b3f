"""Swin: attention within windows, which every other layer shifts, on grids that get coarser (Liu 2021).

ẑ_l = W-MSA(LN(z_{l−1})) + z_{l−1},   z_l = MLP(LN(ẑ_l)) + ẑ_l,   in every second layer SW-MSA, shifted by ⌊M/2⌋
W-MSA: softmax(q kᵀ/√K + T[place_i − place_j]) v over the M × M tokens of a window
between stages: 2 × 2 tokens become one of twice the width;   y = head(mean(LN(z)))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from mirada.core import Attention, BiasTable, Concatenated, Windows
from mirada.errors import MiradaError
from mirada.nn import MLP, EncoderLayer, LinearPatches, Mean, StochasticDepth, pre_norm, rising_rates
from mirada.nn.dropout import Dropout
from mirada.nn.merging import PatchMerging
from mirada.nn.patches import Size, as_size
from mirada.nn.windowed import Fitting, WindowedAttention, masked, published
from mirada.systems.cvt import first_stride
from mirada.systems.registry import Card, one_of, register

FITTINGS: Mapping[str, Fitting] = {"masked": masked, "published": published}
SMALL = {"window_size": 4, "mlp_ratio": 2.0}
PUBLISHED_DIM = 96
PUBLISHED = {"patch_size": 4, "depths": (2, 2, 18, 2)}


@register(
    Card(
        name="swin",
        title="Swin Transformer",
        summary="Every token looks at its window; windows shift from layer to layer, and tokens merge between stages.",
        paper="Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, 2021",
        inputs="image",
        parts={
            "score": "scaled dot",
            "neighbours": "windows, shifted by half in every second layer",
            "position": "bias table",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 32, "depths": (2, 2, 2), "num_heads": (1, 2, 4), **SMALL},
            "micro": {"dim": 48, "depths": (2, 2, 2), "num_heads": (2, 4, 8), **SMALL},
            "T": {**PUBLISHED, "dim": 96, "depths": (2, 2, 6, 2), "num_heads": (3, 6, 12, 24)},
            "S": {**PUBLISHED, "dim": 96, "num_heads": (3, 6, 12, 24)},
            "B": {**PUBLISHED, "dim": 128, "num_heads": (4, 8, 16, 32)},
            "L": {**PUBLISHED, "dim": 192, "num_heads": (6, 12, 24, 48)},
        },
        default_size="nano",
        when_to_use="Large images: cost grows with their area, not its square. T to L with pretrained weights.",
        tiny={
            "dim": 12,
            "depths": (2, 1),
            "num_heads": (2, 3),
            "mlp_ratio": 2.0,
            "patch_size": 2,
            "window_size": 3,
        },
    )
)
class Swin(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dim          channels of the first stage; each further stage has twice as many
    depths       layers of each stage                 num_heads   heads of each stage
    patch_size   pixels of a patch's side; None: the power of two that gives at most 256 tokens at `image_size`
    window_size  side of a window in tokens
    fitting      grids that windows do not fill: "masked": nobody looks at the padding, and an axis no longer than a
                 window is one window, not shifted; "published": zeros are looked at like tokens, and if either side is
                 no longer than a window, windows are squares of that side, none shifted (as in transformers)
    dropout      after the patches, in the MLP and on every branch
    drop_path    probability with which the last layer's branches are skipped; it rises from 0 at the first

    Images are padded with zeros right and below to whole patches, and odd grids likewise before tokens merge. Started
    as in the published code: truncated normal(0, 0.02) weights, zero biases, the patches' as torch does; but with a dim
    below the published 96, layers start Xavier uniform: 0.02 is so little there that they learn much more slowly.
    """

    num_extra = 0

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 96,
        depths: Sequence[int] = (2, 2, 6, 2),
        num_heads: Sequence[int] = (3, 6, 12, 24),
        mlp_ratio: float = 4.0,
        patch_size: int | None = None,
        window_size: int = 7,
        fitting: str = "masked",
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        if not depths or len(depths) != len(num_heads):
            raise MiradaError(f"depths={tuple(depths)}, num_heads={tuple(num_heads)}: must name the same stages")
        self.patch_size = first_stride(as_size(image_size)) if patch_size is None else patch_size
        self.num_stages = len(depths)
        fit = one_of("fitting", fitting, FITTINGS)
        table, half = (window_size, window_size), (window_size // 2, window_size // 2)

        def layer(width: int, heads: int, windows: Windows, rate: float) -> EncoderLayer:
            attention = Attention(Concatenated(width, heads), position=BiasTable(table, heads))
            residual = pre_norm(
                lambda: nn.LayerNorm(width), lambda: nn.Sequential(Dropout(dropout), StochasticDepth(rate))
            )
            return EncoderLayer(
                WindowedAttention(attention, windows, fit),
                MLP(width, int(width * mlp_ratio), nn.GELU(), dropout=dropout),
                residual,
            )

        self.patches = LinearPatches(in_channels, dim, self.patch_size, "pad")
        self.norm = nn.LayerNorm(dim)
        self.dropout = Dropout(dropout)
        rates = iter(rising_rates(drop_path, sum(depths)))
        self.stages = nn.ModuleList()
        for number, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
            width = dim * 2**number
            shifts = [half if index % 2 else (0, 0) for index in range(depth)]
            layers = [layer(width, heads, Windows(table, shift), next(rates)) for shift in shifts]
            self.stages.append(Stage(PatchMerging(width // 2) if number else None, layers))
        self.last_norm = nn.LayerNorm(width)
        self.pooling = Mean()
        self.head = nn.Linear(width, num_classes)
        if dim >= PUBLISHED_DIM:
            self.stages.apply(start)
        self.head.apply(start)
        self.patches.projection.reset_parameters()

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of tokens in the last stage."""
        side = self.patch_size * 2 ** (self.num_stages - 1)
        return -(-images_BCHW.shape[-2] // side), -(-images_BCHW.shape[-1] // side)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: (B, dim of the last stage)."""
        x_BND, grid = self.patches(images_BCHW)
        x_BND = self.dropout(self.norm(x_BND))
        for stage in self.stages:
            x_BND, grid = stage(x_BND, grid)
        return self.pooling(self.last_norm(x_BND))


class Stage(nn.Module):
    """z = layer_depth(… layer_1(merge(x))): one grid, one width."""

    def __init__(self, merging: PatchMerging | None, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.merging, self.layers = merging, nn.ModuleList(layers)

    def forward(self, x_BND: Tensor, grid: Size) -> tuple[Tensor, Size]:
        if self.merging is not None:
            x_BND, grid = self.merging(x_BND, grid)
        for layer in self.layers:
            x_BND = layer(x_BND, grid=grid)
        return x_BND, grid


def start(module: nn.Module) -> None:
    """Truncated normal(0, 0.02) matrices and zero biases, as hierarchical vision transformers begin."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
