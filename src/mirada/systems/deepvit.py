"""DeepViT: heads exchange their maps, so that deep layers do not all look alike (Zhou 2021).

z_0 = [x_class; E x_1; …; E x_N] + E_pos,   z_l = layer_l(z_{l−1}),   y = head(LN(z_depth)_class)

Re-Attention(Q, K, V) = Norm(Θᵀ softmax(Q Kᵀ / √K)) V        in every layer, Θ a learned H × H matrix
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mirada.core import Attention, Learned, ReAttention, plane
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
from mirada.nn.patches import Size, as_size, fit
from mirada.systems.registry import Card, one_of, register
from mirada.systems.vit import Stem, conv_stem, derived_patch_size

SMALL: dict[str, object] = {"mlp_ratio": 2.0, "stem": "conv"}
PUBLISHED: dict[str, object] = {"dim": 384, "num_heads": 12, "mlp_ratio": 3.0, "patch_size": 16}


@register(
    Card(
        name="deepvit",
        title="DeepViT",
        summary="A deep vision transformer whose heads exchange their attention maps in every layer.",
        paper="Zhou et al., DeepViT: Towards Deeper Vision Transformer, 2021",
        inputs="image",
        parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "re-attention"},
        sizes={
            "nano": {"dim": 96, "depth": 6, "num_heads": 6, **SMALL},
            "micro": {"dim": 128, "depth": 8, "num_heads": 8, **SMALL},
            "16B": {"depth": 16, **PUBLISHED},
            "24B": {"depth": 24, **PUBLISHED},
            "32B": {"depth": 32, **PUBLISHED},
        },
        default_size="micro",
        when_to_use="To go deep: where a plain ViT gains nothing from more layers, as their maps have become alike.",
        cannot={
            "recording": "re-attention mixes the maps of the heads and normalises them over the batch, "
            "so that rows do not sum to one"
        },
        tiny={"dim": 24, "depth": 2, "num_heads": 3, "mlp_ratio": 2.0, "patch_size": 4},
    )
)
class DeepViT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    patch_size  pixels of a patch's side; None: the power of two that gives at most 100 patches at `image_size`
    stem        "linear": one matrix for all patches, as published; "conv": 3×3 convolutions with stride 2

    Sides that are no whole number of patches are padded with zeros, right and below. Norm is a batch normalisation over
    heads: in training an image's maps depend on the others of its batch. Started as in the published code: weights,
    positions and class token normal(0, 0.02), biases zero, Θ as torch starts convolutions; but patches as in `vit`.
    """

    num_extra = 1

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 384,
        depth: int = 16,
        num_heads: int = 12,
        mlp_ratio: float = 3.0,
        patch_size: int | None = None,
        stem: str = "linear",
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_size = derived_patch_size(as_size(image_size)) if patch_size is None else patch_size
        stems: dict[str, Stem] = {"linear": LinearPatches, "conv": conv_stem}
        self.patches = one_of("stem", stem, stems)(in_channels, dim, self.patch_size)
        self.layout = torch.channels_last if stem == "conv" else torch.contiguous_format  # see cnn.channels_last
        self.extra = ExtraTokens(dim)
        blank = torch.empty(0, in_channels, *as_size(image_size), device="meta")
        self.position = Learned(self.grid(blank), dim, self.num_extra)
        self.dropout = Dropout(dropout)

        def layer(rate: float) -> EncoderLayer:
            return EncoderLayer(
                Attention(ReAttention(dim, num_heads)),
                MLP(dim, int(dim * mlp_ratio), dropout=dropout),
                pre_norm(
                    lambda: nn.LayerNorm(dim, eps=1e-6),
                    lambda: nn.Sequential(Dropout(dropout), StochasticDepth(rate)),
                ),
            )

        self.encoder = Encoder(map(layer, rising_rates(drop_path, depth)), nn.LayerNorm(dim, eps=1e-6))
        self.pooling = ClassToken()
        self.head = nn.Linear(dim, num_classes)
        for part in (self.encoder, self.head):
            part.apply(start_small)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of patches of such images."""
        height, width = images_BCHW.shape[-2:]
        return -(-height // self.patch_size), -(-width // self.patch_size)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the class token, (B, dim)."""
        images_BCHW = fit(images_BCHW, self.patch_size, "pad").contiguous(memory_format=self.layout)
        x_BND, grid = self.patches(images_BCHW)
        places = plane(grid[0], grid[1], self.num_extra, device=x_BND.device)
        x_BND = self.dropout(self.position(self.extra(x_BND), places))
        return self.pooling(self.encoder(x_BND, places=places))


def start_small(layer: nn.Module) -> None:
    """Weights normal(0, 0.02), cut off at ±2, biases zero."""
    if isinstance(layer, nn.Linear):
        nn.init.trunc_normal_(layer.weight, std=0.02)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
