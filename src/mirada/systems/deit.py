"""Data-efficient image transformer: a ViT that learns from labels and, by a token of its own, from a teacher.

    z_0 = [x_class; x_dist; E x_1; …; E x_N] + E_pos,   y_class = W z_class + b,   y_dist = W′ z_dist + b′

(Touvron 2021, section 4.) The answer is the mean of both outputs. Following a teacher: `mirada.tasks.distillation`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mirada.core import Learned
from mirada.nn.patches import Size, as_size
from mirada.systems.registry import Card, one_of, register
from mirada.systems.vit import ViT

TOKENS = {"token": 2, "none": 1}
SMALL: dict[str, object] = {"mlp_ratio": 2.0, "stem": "conv"}


@register(
    Card(
        name="deit",
        title="Data-efficient Image Transformer",
        summary="A vision transformer with one token that learns from the labels and one that learns from a teacher.",
        paper="Touvron et al., Training data-efficient image transformers & distillation through attention, 2021",
        inputs="image",
        parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "concatenated"},
        sizes={
            "nano": {"dim": 96, "depth": 3, "num_heads": 3, **SMALL},
            "micro": {"dim": 128, "depth": 4, "num_heads": 4, **SMALL},
            "mini": {"dim": 192, "depth": 6, "num_heads": 6, **SMALL},
            "Ti/16": {"dim": 192, "depth": 12, "num_heads": 3, "patch_size": 16, "distillation": "none"},
            "S/16": {"dim": 384, "depth": 12, "num_heads": 6, "patch_size": 16, "distillation": "none"},
            "B/16": {"dim": 768, "depth": 12, "num_heads": 12, "patch_size": 16, "distillation": "none"},
            "Ti/16-distilled": {"dim": 192, "depth": 12, "num_heads": 3, "patch_size": 16},
            "S/16-distilled": {"dim": 384, "depth": 12, "num_heads": 6, "patch_size": 16},
            "B/16-distilled": {"dim": 768, "depth": 12, "num_heads": 12, "patch_size": 16},
        },
        default_size="micro",
        when_to_use="With a good CNN as a teacher: nano to mini for small images, Ti to B with pretrained weights.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "patch_size": 4},
    )
)
class DeiT(ViT):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    patch_size    pixels of a patch's side; None: the power of two that gives at most 100 patches at `image_size`
    stem          "linear" as published; "conv", "shifted", "pooled": as in `vit`
    distillation  "token": a second token and head; "none": the plain networks of the paper
    norm_eps      what every norm adds to the variance; transformers' checkpoints say 1e-12
    remainder     sides that are no whole number of patches: "pad" zeros right and below, "crop" or "refuse"

    Forward gives the mean of both outputs, in training too, as long as nobody teaches; a teacher's objective sets
    `is_taught`, and then training gives both, (class, distillation), as the published code always does. Started as
    there: weights of layers and heads, tokens and positions normal(0, 0.02), biases zero; but patches as in `vit`.
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
        distillation: str = "token",
        dropout: float = 0.0,
        drop_path: float = 0.0,
        norm_eps: float = 1e-6,
        remainder: str = "pad",
    ) -> None:
        super().__init__(
            image_size=image_size,
            in_channels=in_channels,
            num_classes=num_classes,
            dim=dim,
            depth=depth,
            num_heads=num_heads,
            mlp_ratio=mlp_ratio,
            patch_size=patch_size,
            stem=stem,
            dropout=dropout,
            drop_path=drop_path,
            norm_eps=norm_eps,
            remainder=remainder,
        )
        self.num_extra = one_of("distillation", distillation, TOKENS)
        self.is_taught = False
        self.distillation_head: nn.Linear | None = None
        if self.num_extra == 2:
            blank = torch.empty(0, in_channels, *as_size(image_size), device="meta")
            self.extra = ClassAndDistillation(dim)  # type: ignore[assignment]
            self.position = Learned(self.grid(blank), dim, self.num_extra)
            self.pooling = BothTokens()
            self.distillation_head = nn.Linear(dim, num_classes)
            _start(self.distillation_head)
        self.encoder.apply(_start)

    def answer(self, features_BD: Tensor) -> Any:
        if self.distillation_head is None:
            return self.head(features_BD)
        class_BD, distillation_BD = features_BD.chunk(2, dim=-1)
        outputs = self.head(class_BD), self.distillation_head(distillation_BD)
        return outputs if self.training and self.is_taught else (outputs[0] + outputs[1]) / 2


class ClassAndDistillation(nn.Module):
    """z = [x_class; x_dist; x_1; …; x_N]. The class token has the name that it has in a ViT."""

    def __init__(self, dim: int, std: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, dim) * std)
        self.distillation = nn.Parameter(torch.randn(1, dim) * std)

    def forward(self, x_BND: Tensor) -> Tensor:
        both_2D = torch.cat([self.weight, self.distillation])
        return torch.cat([both_2D.expand(x_BND.shape[0], -1, -1), x_BND], dim=1)


class BothTokens(nn.Module):
    """y = [x_class ‖ x_distillation]: what the two heads see, side by side, (B, 2·D)."""

    def forward(self, x_BND: Tensor) -> Tensor:
        return x_BND[:, :2].flatten(1)


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
