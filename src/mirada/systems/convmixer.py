"""ConvMixer: patches, mixed in space by depthwise and across channels by pointwise convolutions (Trockman 2022).

    z_0 = BN(g(conv_{P/P}(x))),   z′_l = z_{l−1} + BN(g(depthwise_K(z_{l−1}))),   z_l = BN(g(pointwise(z′_l)))

There is no attention: what it reaches shows how much of a vision transformer is the patches.
"""

from __future__ import annotations

from torch import Tensor, nn

from mirada.nn.dropout import Dropout
from mirada.nn.patches import Remainder, Size, as_size, fit
from mirada.systems.cnn import Residual, channels_last
from mirada.systems.registry import Card, one_of, register
from mirada.systems.vit import REMAINDERS, derived_patch_size

ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU}


@register(
    Card(
        name="convmixer",
        title="ConvMixer",
        summary="Patches of an image, mixed by large depthwise convolutions and 1×1 convolutions at one resolution.",
        paper="Trockman & Kolter, Patches Are All You Need?, 2022",
        inputs="image",
        parts={},
        sizes={
            "nano": {"dim": 96, "depth": 4, "kernel_size": 5},
            "micro": {"dim": 128, "depth": 6, "kernel_size": 5},
            "256/8": {"dim": 256, "depth": 8, "kernel_size": 5, "patch_size": 2},
            "1536/20": {"dim": 1536, "depth": 20, "kernel_size": 9, "patch_size": 7},
            "768/32": {"dim": 768, "depth": 32, "kernel_size": 7, "patch_size": 7, "activation": "relu"},
            "1024/20": {"dim": 1024, "depth": 20, "kernel_size": 9, "patch_size": 14},
        },
        default_size="micro",
        when_to_use="To learn whether attention helps: as simple as a ViT, with few parameters, but slow for its size.",
        cannot={"recording": "it has no attention"},
        tiny={"dim": 24, "depth": 2, "kernel_size": 3, "patch_size": 4},
    )
)
class ConvMixer(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dim          channels, in every layer
    kernel_size  side of the depthwise convolutions; zeros around the image keep its size
    patch_size   pixels of a patch's side; None: the power of two that gives at most 100 patches at `image_size`
    activation   "gelu" or "relu" (the published 768/32)
    remainder    sides that are no whole number of patches: "pad" zeros right and below, "crop" or "refuse"

    Started as torch starts its layers, as in the published code.
    """

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 256,
        depth: int = 8,
        kernel_size: int = 5,
        patch_size: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.0,
        remainder: str = "pad",
    ) -> None:
        super().__init__()
        self.patch_size = derived_patch_size(as_size(image_size)) if patch_size is None else patch_size
        self.remainder: Remainder = one_of("remainder", remainder, REMAINDERS)
        g = one_of("activation", activation, ACTIVATIONS)

        def layer(convolution: nn.Conv2d) -> nn.Sequential:
            return nn.Sequential(convolution, g(), nn.BatchNorm2d(dim))

        def block() -> nn.Sequential:
            depthwise = nn.Conv2d(dim, dim, kernel_size, padding="same", groups=dim)
            return nn.Sequential(Residual(layer(depthwise)), layer(nn.Conv2d(dim, dim, 1)))

        self.stem = layer(nn.Conv2d(in_channels, dim, self.patch_size, self.patch_size))
        self.blocks = nn.Sequential(*(block() for _ in range(depth)))
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(images_BCHW)))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the mean of every channel, (B, dim)."""
        images_BCHW = fit(images_BCHW, self.patch_size, self.remainder)
        return self.blocks(channels_last(self.stem(channels_last(images_BCHW)))).mean((-2, -1))
