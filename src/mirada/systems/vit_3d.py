"""Vision Transformer for volumes: patches are boxes of slices × height × width, positions lie on a lattice.

    z_0 = [x_class; E x_1; …; E x_N] + E_pos,   n over (S/T)·(H/P)·(W/P) boxes;  the rest is `vit`

Weights of a ViT for images become a start for it by inflation (`mirada.weights.inflate`), so that a volume whose
slices are all alike gives what the image gives.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mirada.core import Learned, lattice
from mirada.nn import ExtraTokens
from mirada.nn.volumes import VolumePatches, VolumeSize, lattice_of
from mirada.systems.registry import Card, register
from mirada.systems.vit import ViT

SMALL: dict[str, object] = {"mlp_ratio": 2.0, "patch_size": 8, "patch_slices": 4}


@register(
    Card(
        name="vit_3d",
        title="Vision Transformer for volumes",
        summary="A volume is cut into boxes, and every box looks at every other in every layer.",
        paper="Zhang et al., Adapting Pre-trained Vision Transformers from 2D to 3D through Weight Inflation, 2022",
        inputs="volume",
        parts={
            "score": "scaled dot",
            "neighbours": "full",
            "position": "learned on the lattice",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 96, "depth": 3, "num_heads": 3, **SMALL},
            "micro": {"dim": 128, "depth": 4, "num_heads": 4, **SMALL},
            "Ti/16": {"dim": 192, "depth": 12, "num_heads": 3, "patch_size": 16, "patch_slices": 16},
            "S/16": {"dim": 384, "depth": 12, "num_heads": 6, "patch_size": 16, "patch_slices": 16},
            "B/16": {"dim": 768, "depth": 12, "num_heads": 12, "patch_size": 16, "patch_slices": 16},
        },
        default_size="micro",
        when_to_use="Scans and stacks of slices, best started from the weights of a ViT for images.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "patch_size": 4, "patch_slices": 2},
    )
)
class ViT3D(ViT):
    """Logits (B, num_classes) of volumes (B, in_channels, slices, height, width), at any such size.

    volume_size   (slices, height, width)
    patch_size    pixels of a box's height and width; patch_slices: how many slices it has
    pooling       "class": a class token; "mean": of the boxes; "sequence": a learned query looks at the boxes
    class_tokens  how many there are with pooling="class"; the first is read, the others are looked at like it

    The names of the parameters are those of `vit`, and so is their start.
    """

    def __init__(
        self,
        *,
        volume_size: VolumeSize,
        in_channels: int,
        num_classes: int,
        dim: int = 192,
        depth: int = 12,
        num_heads: int = 3,
        mlp_ratio: float = 4.0,
        patch_size: int = 16,
        patch_slices: int = 16,
        pooling: str = "class",
        class_tokens: int = 1,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        layer_scale: float | None = None,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__(
            image_size=volume_size[1:],
            in_channels=in_channels,
            num_classes=num_classes,
            dim=dim,
            depth=depth,
            num_heads=num_heads,
            mlp_ratio=mlp_ratio,
            patch_size=patch_size,
            position="none",
            pooling=pooling,
            dropout=dropout,
            drop_path=drop_path,
            layer_scale=layer_scale,
            norm_eps=norm_eps,
        )
        if pooling == "class":
            self.num_extra = class_tokens
            self.extra = ExtraTokens(dim, class_tokens)
        self.box: VolumeSize = (patch_slices, patch_size, patch_size)
        self.patches = VolumePatches(in_channels, dim, self.box)
        blank = torch.empty(0, in_channels, *volume_size, device="meta")
        self.position = Learned(self.grid(blank), dim, self.num_extra)

    def grid(self, volumes_BCSHW: Tensor) -> VolumeSize:  # type: ignore[override]
        """Boxes along slices, height and width of such volumes."""
        return lattice_of(volumes_BCSHW, self.box)

    def features(self, volumes_BCSHW: Tensor) -> Tensor:
        """What the head sees: (B, dim)."""
        x_BND, size = self.patches(volumes_BCSHW)
        places = lattice(size, self.num_extra, device=x_BND.device)
        x_BND = self.position(self.extra(x_BND), places)
        return self.pooling(self.encoder(self.dropout(x_BND), places=places))
