"""U-Net: down to see the whole, up to see where, with what was seen on the way down beside it (Ronneberger 2015).

    d_0 = conv²(x),  d_l = conv²(pool d_{l−1}),   u_depth = d_depth,  u_l = conv²([up u_{l+1}; d_l]),   y = head(u_0)

As trained today: padded convolutions with batch norm, bilinear upsampling. The baseline beside every `transunet`.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.errors import MiradaError
from mirada.nn.patches import Size
from mirada.nn.upsampling import UpBlock, padded_to, two_convolutions
from mirada.systems.cnn import channels_last
from mirada.systems.registry import Card, register


@register(
    Card(
        name="unet",
        title="U-Net",
        summary="Convolutions down to a coarse view and back up, with skips that keep where things are.",
        paper="Ronneberger et al., U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015",
        inputs="masks",
        parts={},
        sizes={
            "nano": {"dim": 8, "depth": 4},
            "micro": {"dim": 16, "depth": 4},
            "mini": {"dim": 24, "depth": 4},
            "base": {"dim": 64, "depth": 4},
        },
        default_size="micro",
        when_to_use="Masks from few images or little time; the baseline that a transformer has to beat.",
        cannot={"recording": "it has no attention"},
        tiny={"dim": 4, "depth": 2},
        learning_rate=4e-3,
    )
)
class UNet(nn.Module):
    """Logits (B, num_classes, height, width) of images (B, in_channels, height, width), at any height and width.

    image_size  is not used: all layers are convolutions
    dim        channels at full size; each level below has twice as many
    depth      how often the sides are halved
    num_skips  how many of the ways across are open, the coarsest first; None: all

    Sides are padded with zeros to a multiple of 2^depth. Convolutions start He normal.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 16,
        depth: int = 4,
        num_skips: int | None = None,
    ) -> None:
        super().__init__()
        if num_skips is not None and not 0 <= num_skips <= depth:
            raise MiradaError(f"num_skips={num_skips}: must be 0 to {depth}, the depth")
        self.stride, self.num_skips = 2**depth, depth if num_skips is None else num_skips
        widths = [dim * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            two_convolutions(before, after) for before, after in zip([in_channels, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(
            UpBlock(widths[level + 1], widths[level] if depth - level <= self.num_skips else 0, widths[level])
            for level in reversed(range(depth))
        )
        self.head = nn.Conv2d(dim, num_classes, 1)
        # How far around it a pixel sees: two convolutions at each level, down and up, pooling, and neighbours of ×2.
        self.reach = sum(2 * 2**level for level in range(depth + 1)) + sum(5 * 2**level for level in range(depth))

    def forward(self, images_BCHW: Tensor) -> Tensor:
        height, width = images_BCHW.shape[-2:]
        x_BCHW = channels_last(padded_to(images_BCHW, self.stride))
        seen: list[Tensor] = []
        for level, convolutions in enumerate(self.down):
            x_BCHW = convolutions(channels_last(x_BCHW) if level == 0 else F.max_pool2d(seen[-1], 2))
            seen.append(x_BCHW)
        for number, block in enumerate(self.up):
            x_BCHW = block(x_BCHW, seen[-2 - number] if number < self.num_skips else None)
        return self.head(x_BCHW)[..., :height, :width]
