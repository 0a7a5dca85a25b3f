"""TransUNet: a CNN sees details, a transformer on its coarsest map sees the whole, a U-Net's decoder says where.

    f_2, f_4, f_8, f_16 = CNN(x),   z = transformer(E f_16 + E_pos),   y = head(up([up([up([up(z); f_8]); f_4]); f_2]))

(Chen 2021.) The index of a map is its stride. The transformer has no class token. Published: BiT's ResNet-50 without
its last stage, twelve layers of ViT-B, decoder widths 256, 128, 64, 16.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated, Learned, plane
from mirada.errors import MiradaError
from mirada.nn import MLP, Encoder, EncoderLayer, LinearPatches, pre_norm
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size
from mirada.nn.upsampling import UpBlock, convolution_norm_relu, padded_to
from mirada.systems.cnn import channels_last, convolution, stage
from mirada.systems.registry import Card, one_of, register
from mirada.systems.vit_hybrid import BiT

STRIDE = 16


@register(
    Card(
        name="transunet",
        title="TransUNet",
        summary="A U-Net whose coarsest level is a vision transformer: every place of the image sees every other.",
        paper="Chen et al., TransUNet: Transformers Make Strong Encoders for Medical Image Segmentation, 2021",
        inputs="masks",
        parts={"score": "scaled dot", "neighbours": "full", "position": "learned", "heads": "concatenated"},
        sizes={
            "nano": {"dim": 64, "depth": 2, "num_heads": 2, "width": 8, "decoder_widths": (32, 24, 16, 8)},
            "micro": {"dim": 128, "depth": 3, "num_heads": 4, "width": 16, "decoder_widths": (64, 48, 32, 16)},
            "mini": {"dim": 192, "depth": 4, "num_heads": 6, "width": 24, "decoder_widths": (96, 64, 48, 16)},
            "R50+B/16": {
                "dim": 768,
                "depth": 12,
                "num_heads": 12,
                "mlp_ratio": 4.0,
                "backbone": "resnet",
                "width": 64,
                "stages": (3, 4, 9),
                "decoder_widths": (256, 128, 64, 16),
                "dropout": 0.1,
            },
        },
        default_size="micro",
        when_to_use="Masks where the whole image matters: large structures, or what a place is depends on others.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "width": 4, "decoder_widths": (8, 8, 4, 4)},
        learning_rate=2e-3,
    )
)
class TransUNet(nn.Module):
    """Logits (B, num_classes, height, width) of images (B, in_channels, height, width), at any height and width.

    backbone        "cnn": the first stages of `cnn`; "resnet": BiT's (see `vit_hybrid`)
    width           channels of the backbone's first map, of stride 2
    stages          residual units in the stages after it: of stride 4, 8 and 16
    num_skips       0 to 3: how many maps of the backbone the decoder sees, the coarsest first
    decoder_widths  channels of the decoder at stride 8, 4, 2 and 1

    Sides are padded with zeros to a multiple of 16; positions are interpolated at other sizes. The transformer starts
    as `vit` does, convolutions He normal.
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
        mlp_ratio: float = 2.0,
        backbone: str = "cnn",
        width: int = 16,
        stages: Sequence[int] = (0, 1, 1),
        num_skips: int = 3,
        decoder_widths: Sequence[int] = (64, 48, 32, 16),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= num_skips <= 3:
            raise MiradaError(f"num_skips={num_skips}: must be 0 to 3, as there are maps of stride 8, 4 and 2")
        for argument, given, wanted in (("decoder_widths", decoder_widths, 4), ("stages", stages, 3)):
            if len(given) != wanted:
                raise MiradaError(f"{argument}={tuple(given)}: must be {wanted} numbers")
        self.patch_size, self.num_extra, self.num_skips = STRIDE, 0, num_skips
        backbones: dict[str, tuple[type[nn.Module], int]] = {"cnn": (CNNMaps, 2), "resnet": (BiT, 4)}
        make, widening = one_of("backbone", backbone, backbones)
        self.backbone = make(in_channels, width, stages)
        found = [width, *(widening * width * 2**number for number in range(3))]  # channels at stride 2, 4, 8, 16

        self.patches = LinearPatches(found[-1], dim, 1)
        self.position = Learned(self.grid(torch.empty(0, in_channels, *as_size(image_size), device="meta")), dim)
        self.dropout = Dropout(dropout)

        def layer() -> EncoderLayer:
            mlp = MLP(dim, int(dim * mlp_ratio), nn.GELU(), dropout=dropout)
            norms = pre_norm(lambda: nn.LayerNorm(dim, eps=1e-6), lambda: Dropout(dropout))
            return EncoderLayer(Attention(Concatenated(dim, num_heads)), mlp, norms)

        self.encoder = Encoder((layer() for _ in range(depth)), nn.LayerNorm(dim, eps=1e-6))
        before = [2 * decoder_widths[0], *decoder_widths]
        skips = [channels if number < num_skips else 0 for number, channels in enumerate(reversed(found[:-1]))]
        self.widen = convolution_norm_relu(dim, before[0])
        self.up = nn.ModuleList(map(UpBlock, before, [*skips, 0], decoder_widths))
        self.head = nn.Conv2d(decoder_widths[-1], num_classes, 3, padding=1)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of the places that look at each other."""
        return -(-images_BCHW.shape[-2] // STRIDE), -(-images_BCHW.shape[-1] // STRIDE)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        height, width = images_BCHW.shape[-2:]
        *seen, coarsest_BCHW = self.backbone.maps(channels_last(padded_to(images_BCHW, STRIDE)))  # type: ignore[operator]
        x_BCHW = self.widen(self.look(coarsest_BCHW))
        for number, block in enumerate(self.up):
            x_BCHW = block(x_BCHW, seen[-1 - number] if number < self.num_skips else None)
        return self.head(x_BCHW)[..., :height, :width]

    def look(self, map_BCHW: Tensor) -> Tensor:
        """The transformer on the places of a map: (B, D, H, W)."""
        x_BND, grid = self.patches(map_BCHW)
        places = plane(grid[0], grid[1], device=x_BND.device)
        x_BND = self.encoder(self.dropout(self.position(x_BND, places)), places=places)
        return channels_last(x_BND.mT.unflatten(-1, grid))


class CNNMaps(nn.Module):
    """A convolution with stride 2, then stages of `cnn`, each half as large and twice as wide as what it sees."""

    def __init__(self, in_channels: int, width: int, stages: Sequence[int]) -> None:
        super().__init__()
        self.first = convolution(in_channels, width, stride=2)
        self.stages = nn.ModuleList(
            stage(width * 2**number, width * 2 ** (number + 1), depth) for number, depth in enumerate(stages)
        )

    def maps(self, images_BCHW: Tensor) -> list[Tensor]:
        """Of stride 2, 4, 8 and 16."""
        found = [channels_last(self.first(images_BCHW))]
        for units in self.stages:
            found.append(units(found[-1]))
        return found
