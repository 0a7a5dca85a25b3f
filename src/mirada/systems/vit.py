"""Vision transformer: an image is a sentence of patches (Dosovitskiy 2020).

    z_0 = [x_class; E x_1; …; E x_N] + E_pos,   z_l = layer_l(z_{l−1}),   y = head(pool(LN(z_depth)))

The named sizes are those of the paper. What helps on small data is a choice of parts: a convolutional stem (Xiao 2021)
or shifted patches (Lee 2021) for E, locality attention (Lee 2021), sequence pooling (Hassani 2021).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import (
    Attention,
    Concatenated,
    Learned,
    LearnedTemperature,
    NotSelf,
    Places,
    Rotary,
    ScaledDot,
    Sinusoidal,
    full,
    plane,
)
from mirada.errors import MiradaError
from mirada.nn import (
    MLP,
    ClassToken,
    ConvStem,
    Encoder,
    EncoderLayer,
    ExtraTokens,
    LayerScale,
    LinearPatches,
    Mean,
    SequencePooling,
    ShiftedPatches,
    StochasticDepth,
    pre_norm,
    rising_rates,
)
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Remainder, Size, as_size, fit
from mirada.systems.cnn import channels_last, convolution, stage
from mirada.systems.registry import Card, one_of, register

Stem = Callable[[int, int, int], nn.Module]  # in_channels, dim, patch_size
Make = Callable[[], Any]
REMAINDERS: dict[str, Remainder] = {"pad": "pad", "crop": "crop", "refuse": "refuse"}
MAX_DERIVED_TOKENS = 100  # 28 px → 7 × 7, 32 and 64 px → 8 × 8: what two cores can train
MAX_POOLED_TOKENS = 36  # 28, 32, 64 and 128 px → 4 × 4: the convolutions in front have seen what is near


@register(
    Card(
        name="vit",
        title="Vision Transformer",
        summary="An image is cut into patches, and every patch looks at every other in every layer.",
        paper="Dosovitskiy et al., An Image is Worth 16x16 Words, 2020",
        inputs="image",
        parts={
            "score": "scaled dot (locality: learned temperature)",
            "neighbours": "full (locality: all but oneself)",
            "position": "learned, sinusoidal or rotary on the plane",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 96, "depth": 3, "num_heads": 3, "mlp_ratio": 2.0, "stem": "conv", "pooling": "sequence"},
            "micro": {"dim": 128, "depth": 4, "num_heads": 4, "mlp_ratio": 2.0, "stem": "conv", "pooling": "sequence"},
            "mini": {"dim": 192, "depth": 6, "num_heads": 6, "mlp_ratio": 2.0, "stem": "conv", "pooling": "sequence"},
            "Ti/16": {"dim": 192, "depth": 12, "num_heads": 3, "patch_size": 16},
            "S/16": {"dim": 384, "depth": 12, "num_heads": 6, "patch_size": 16},
            "B/16": {"dim": 768, "depth": 12, "num_heads": 12, "patch_size": 16},
            "B/32": {"dim": 768, "depth": 12, "num_heads": 12, "patch_size": 32},
            "L/16": {"dim": 1024, "depth": 24, "num_heads": 16, "patch_size": 16},
            "H/14": {"dim": 1280, "depth": 32, "num_heads": 16, "patch_size": 14},
        },
        default_size="micro",
        when_to_use="The starting point: nano to mini from scratch on small images, Ti to H with pretrained weights.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "patch_size": 4},
    )
)
class ViT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    patch_size   pixels of a patch's side; None: the power of two that gives at most 100 patches at `image_size`, or at
                 most 36 with the stem "pooled"
    stem         "linear": one matrix for all patches; "shifted": patches with their surroundings; "conv": 3×3
                 convolutions with stride 2; "pooled": the first stages of `cnn`, with pooling and residuals
    position     "learned" (interpolated at other sizes), "sinusoidal", "rotary", "none"
    pooling      "class": a class token; "mean": of the patches; "sequence": a learned query looks at the patches
    attention    "standard", or "locality": nobody looks at itself, and the temperature is learned
    layer_scale  start of a learned factor per channel on every branch (CaiT, Touvron 2021); None: no such factor
    patch_keep   share of the patches that a training step uses, drawn for each image (PatchDropout, Liu 2022)
    norm_eps     what every norm adds to the variance; transformers' checkpoints say 1e-12
    remainder    sides that are no whole number of patches: "pad" zeros right and below, "crop" or "refuse"

    Started as in the published code: Xavier uniform weights, zero biases, positions normal(0, 0.02); but the class
    token and the head start at normal(0, 0.02) where that code has zeros, so that all learn from the first step.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 192,
        depth: int = 12,
        num_heads: int = 3,
        mlp_ratio: float = 4.0,
        patch_size: int | None = None,
        stem: str = "linear",
        position: str = "learned",
        pooling: str = "class",
        attention: str = "standard",
        dropout: float = 0.0,
        drop_path: float = 0.0,
        layer_scale: float | None = None,
        patch_keep: float = 1.0,
        norm_eps: float = 1e-6,
        remainder: str = "pad",
    ) -> None:
        super().__init__()
        if not 0 < patch_keep <= 1:
            raise MiradaError(f"patch_keep={patch_keep}: must be above 0 and at most 1")
        most = MAX_POOLED_TOKENS if stem == "pooled" else MAX_DERIVED_TOKENS
        self.patch_size = derived_patch_size(as_size(image_size), most) if patch_size is None else patch_size
        self.remainder: Remainder = one_of("remainder", remainder, REMAINDERS)
        self.patch_keep = patch_keep
        self.num_extra = 1 if pooling == "class" else 0
        blank = torch.empty(0, in_channels, *as_size(image_size), device="meta")

        stems: dict[str, Stem] = {
            "linear": LinearPatches,
            "shifted": ShiftedPatches,
            "conv": conv_stem,
            "pooled": PooledStem,
        }
        self.patches = one_of("stem", stem, stems)(in_channels, dim, self.patch_size)
        self.layout = (
            torch.channels_last if stem in ("conv", "pooled") else torch.contiguous_format
        )  # see cnn.channels_last
        self.extra = ExtraTokens(dim, self.num_extra) if self.num_extra else nn.Identity()
        positions: dict[str, Make] = {
            "learned": lambda: Learned(self.grid(blank), dim, self.num_extra),
            "sinusoidal": lambda: Sinusoidal(dim, axes=2),
            "rotary": lambda: None,  # in the attention
            "none": lambda: None,
        }
        self.position = one_of("position", position, positions)()
        self.dropout = Dropout(dropout)

        def after_branch(rate: float) -> nn.Sequential:
            scale = [] if layer_scale is None else [LayerScale(dim, layer_scale)]
            return nn.Sequential(*scale, Dropout(dropout), StochasticDepth(rate))

        def layer(rate: float) -> EncoderLayer:
            heads = Concatenated(dim, num_heads)
            score, neighbours = one_of(
                "attention",
                attention,
                {"standard": (ScaledDot(), full()), "locality": (LearnedTemperature(heads.head_dim), NotSelf())},
            )
            # A base of 100, not 10,000: a grid of patches is short (Heo 2024, "RoPE for ViT").
            rotary = Rotary(heads.head_dim, axes=2, base=100.0) if position == "rotary" else None
            return EncoderLayer(
                Attention(heads, score=score, neighbours=neighbours, position=rotary),
                MLP(dim, int(dim * mlp_ratio), nn.GELU(), dropout=dropout),
                pre_norm(lambda: nn.LayerNorm(dim, eps=norm_eps), lambda: after_branch(rate)),
            )

        self.encoder = Encoder(map(layer, rising_rates(drop_path, depth)), nn.LayerNorm(dim, eps=norm_eps))
        poolings: dict[str, Make] = {"class": ClassToken, "mean": Mean, "sequence": lambda: SequencePooling(dim)}
        self.pooling = one_of("pooling", pooling, poolings)()
        self.head = nn.Linear(dim, num_classes)
        nn.init.trunc_normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of patches of such images."""
        height, width = fit(images_BCHW[:0], self.patch_size, self.remainder).shape[-2:]
        return height // self.patch_size, width // self.patch_size

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.answer(self.features(images_BCHW))

    def answer(self, features_BD: Tensor) -> Tensor:
        return self.head(features_BD)

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: (B, dim)."""
        images_BCHW = fit(images_BCHW, self.patch_size, self.remainder).contiguous(memory_format=self.layout)
        x_BND, grid = self.patches(images_BCHW)
        x_BND = self.extra(x_BND)
        places = plane(grid[0], grid[1], self.num_extra, device=x_BND.device)
        if self.position is not None:
            x_BND = self.position(x_BND, places)
        if self.training and self.patch_keep < 1:
            x_BND, places = some_patches(x_BND, places, self.patch_keep)
        return self.pooling(self.encoder(self.dropout(x_BND), places=places))


def derived_patch_size(image_size: Size, most: int = MAX_DERIVED_TOKENS) -> int:
    """The smallest power of two that cuts the image into at most so many patches."""
    patch = 1
    while -(-image_size[0] // patch) * -(-image_size[1] // patch) > most:
        patch *= 2
    return patch


def conv_stem(in_channels: int, dim: int, patch_size: int) -> ConvStem:
    """At least two 3×3 convolutions, those at the end with stride 2, each twice as wide as the one before."""
    num_halvings = halvings(patch_size)
    num_layers = max(2, num_halvings)
    widths = tuple(max(dim >> layer, 8) for layer in reversed(range(num_layers)))
    return ConvStem(in_channels, dim, widths, (1,) * (num_layers - num_halvings) + (2,) * num_halvings)


class PooledStem(nn.Module):
    """2s×2s convolutions with stride s, then up to three stages of `cnn` that halve, twice as wide up to D; 1×1 to D.

    A small CNN without its last stage stands in front of attention, as in compact transformers (Hassani 2021). With
    three stages it starts at half the width, and patches above 16 px take a larger stride: the cost stays that of a
    small image.
    """

    def __init__(self, in_channels: int, dim: int, patch_size: int) -> None:
        super().__init__()
        num_stages = min(3, max(0, halvings(patch_size) - 1))
        first = max(3 * dim // (16 if num_stages == 3 else 8), 8)
        widths = [min(dim, first << layer) for layer in range(1 + num_stages)]
        stride = patch_size >> num_stages
        stages = [stage(before, width, depth=1) for before, width in itertools.pairwise(widths)]
        self.first = convolution(in_channels, widths[0], stride, size=max(3, 2 * stride))
        self.stages = nn.Sequential(*stages)
        self.projection = nn.Conv2d(widths[-1], dim, 1)

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Size]:
        features_BDHW = self.projection(self.stages(channels_last(self.first(image_BCHW))))
        return features_BDHW.flatten(2).mT, (features_BDHW.shape[-2], features_BDHW.shape[-1])


def halvings(patch_size: int) -> int:
    """How often a side is halved to make one token of a patch."""
    count = patch_size.bit_length() - 1
    if patch_size != 2**count:
        raise MiradaError(
            f"patch_size={patch_size} with a stem of convolutions: must be a power of two, as each halves"
        )
    return count


def some_patches(x_BND: Tensor, places: Places, share: float) -> tuple[Tensor, Places]:
    """A random share of each image's patches, in order, after all of the extra tokens; they keep their places."""
    batch, num_extra = x_BND.shape[0], places.num_extra
    num_patches = x_BND.shape[1] - num_extra
    num_kept = max(1, round(share * num_patches))
    kept_BN = torch.rand(batch, num_patches, device=x_BND.device).argsort(1)[:, :num_kept].sort(1).values
    extra_BN = torch.arange(num_extra, device=x_BND.device).expand(batch, -1)
    index_BN = torch.cat([extra_BN, kept_BN + num_extra], dim=1)
    x_BND = x_BND.gather(1, index_BN[..., None].expand(-1, -1, x_BND.shape[-1]))
    return x_BND, Places(index_BN[:, None], places.coords_NA[kept_BN][:, None], places.size, num_extra)
