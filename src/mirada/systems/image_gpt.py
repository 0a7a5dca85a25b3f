"""Image GPT: pixels are words, and an image is written from left to right and from top to bottom (Chen 2020).

    −log p(x) = − Σ_n log p(x_n | x_1 … x_{n−1}),   p(· | x_1 … x_{n−1}) from W LN(z_depth)_n,
    z_0 = [e_start; E x_1; …; E x_{N−1}] + P,   z_l = causal layer_l(z_{l−1})

A pixel is the number of its colour in a palette. P_n belongs to the pixel that is written at n, not to the one read.

Shape letters: B batch, C channels, H and W pixels, N = H·W, D dim, T colours of the palette.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import Attention, Cache, Concatenated, Learned, Places, causal, plane
from mirada.errors import MiradaError
from mirada.nn import MLP, Encoder, EncoderLayer, QuickGELU, TokenEmbedding, pre_norm
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size
from mirada.systems.registry import Card, register

MAX_TOKENS = 2**14  # whose logits are held at once where nothing is trained: 32 MB with 512 colours


@register(
    Card(
        name="image_gpt",
        title="Image GPT",
        summary="Learns images as sequences of colours: it draws new ones, completes halves, and finds odd ones.",
        paper="Chen et al., Generative Pretraining from Pixels, 2020",
        inputs="pixels",
        parts={
            "score": "scaled dot",
            "neighbours": "causal, in raster order",
            "position": "learned",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 64, "depth": 4, "num_heads": 4},
            "micro": {"dim": 128, "depth": 6, "num_heads": 4},
            "S": {"dim": 512, "depth": 24, "num_heads": 8},
            "M": {"dim": 1024, "depth": 36, "num_heads": 8},
            "L": {"dim": 1536, "depth": 48, "num_heads": 16},
        },
        default_size="nano",
        when_to_use="To draw or complete small images and to learn from images without labels; every pixel is a token.",
        tiny={"dim": 16, "depth": 2, "num_heads": 2, "num_colours": 7},
    )
)
class ImageGPT(nn.Module):
    """Nats per pixel (B,) of images (B, in_channels, height, width): how surprising each is, in the palette's colours.

    num_colours  of the palette, which is learned from images before training (`give_palette`) and saved with the model
    image_size   of the learned positions; at another size they are interpolated

    Norms divide by the root of the mean square and have a gain only. Started as in the published code: weights
    normal(0, 0.02), positions normal(0, 0.01), biases and the output matrix zero: at first all colours are equally
    likely.
    """

    num_extra = 0

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_colours: int = 512,
        dim: int = 64,
        depth: int = 4,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.palette_TC: Tensor
        self.register_buffer("palette_TC", torch.full((num_colours, in_channels), torch.nan))
        self.start = num_colours  # the number of the token before the first pixel
        self.image_size = as_size(image_size)
        self.embedding = TokenEmbedding(num_colours + 1, dim, scale=1.0, std=0.02)
        self.position = Learned(self.image_size, dim, std=0.01)
        self.dropout = Dropout(dropout)
        self.encoder = Encoder(
            [
                EncoderLayer(
                    Attention(Concatenated(dim, num_heads), neighbours=causal()),
                    MLP(dim, int(dim * mlp_ratio), QuickGELU(), dropout=dropout),
                    pre_norm(lambda: nn.RMSNorm(dim, eps=1e-5), lambda: Dropout(dropout)),
                )
                for _ in range(depth)
            ],
            nn.RMSNorm(dim, eps=1e-5),
        )
        self.to_colour = nn.Linear(dim, num_colours, bias=False)
        for layer in self.encoder.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(self.to_colour.weight)

    @property
    def has_palette(self) -> bool:
        return not bool(self.palette_TC.isnan().any())

    def give_palette(self, palette_TC: Tensor) -> None:
        """The colours, in the scale of the images that the model is given."""
        if palette_TC.shape != self.palette_TC.shape:
            raise MiradaError(
                f"a palette of {tuple(palette_TC.shape)} was given: this model has {self.palette_TC.shape[0]} colours "
                f"of {self.palette_TC.shape[1]} channels"
            )
        self.palette_TC.copy_(palette_TC)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of tokens: every pixel is one."""
        return images_BCHW.shape[-2], images_BCHW.shape[-1]

    def colours_of(self, images_BCHW: Tensor) -> Tensor:
        """(B, N) numbers of the nearest colours, in raster order."""
        if not torch.compiler.is_compiling() and not self.has_palette:
            raise MiradaError("this model has no palette yet: learn one from images and give it by `give_palette`")
        pixels_BNC = images_BCHW.flatten(2).mT.contiguous()
        return torch.cdist(pixels_BNC, self.palette_TC.to(pixels_BNC.dtype)).argmin(-1)

    def images_of(self, colour_BN: Tensor, size: Size | None = None) -> Tensor:
        """(B, C, H, W) of colour numbers."""
        return self.palette_TC[colour_BN].mT.unflatten(2, self.image_size if size is None else size)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self._nats(images_BCHW)
        at_once = max(1, MAX_TOKENS // images_BCHW[0, 0].numel()) if len(images_BCHW) else 1
        return torch.cat([self._nats(piece_BCHW) for piece_BCHW in images_BCHW.split(at_once)])

    def _nats(self, images_BCHW: Tensor) -> Tensor:
        colour_BN = self.colours_of(images_BCHW)
        logits_BNT = self.logits(colour_BN, self.grid(images_BCHW))
        return F.cross_entropy(logits_BNT.mT, colour_BN, reduction="none").mean(1)

    def logits(self, colour_BN: Tensor, size: Size | None = None) -> Tensor:
        """(B, N, T): of pixel n, from the pixels before it. The last pixel is not looked at."""
        read_BN = F.pad(colour_BN[:, :-1], (1, 0), value=self.start)
        return self.next_logits(read_BN, size)

    def next_logits(self, read_BN: Tensor, size: Size | None = None, cache: Cache | None = None) -> Tensor:
        """(B, N, T): what comes after each token that is read, the first of all being `start`; with a cache these are
        the tokens that it has not seen.
        """
        return self.to_colour(self.encoder(self._embedded(read_BN, size, cache), cache=cache))

    def features(self, images_BCHW: Tensor, layer: int | None = None) -> Tensor:
        """(B, D): the mean over pixels of what the attention of a layer sees, of the middle one if None: linear probes
        look at it (Chen 2020, section 3.4).
        """
        colour_BN = self.colours_of(images_BCHW)
        read_BN = F.pad(colour_BN[:, :-1], (1, 0), value=self.start)
        layers = self.encoder.layers
        middle = len(layers) // 2 if layer is None else layer
        x_BND = self._embedded(read_BN, self.grid(images_BCHW))
        for number in range(middle):
            x_BND = layers[number](x_BND)
        norm = layers[middle].get_submodule("attention.norm") if middle < len(layers) else self.encoder.norm
        return norm(x_BND).mean(1)

    def _embedded(self, read_BN: Tensor, size: Size | None, cache: Cache | None = None) -> Tensor:
        whole = plane(*(self.image_size if size is None else size), device=read_BN.device)
        seen = 0 if cache is None else cache.length(self.encoder.layers[0].get_submodule("attention.inner"))
        places = some_places(whole, seen, read_BN.shape[1])
        return self.dropout(self.position(self.embedding(read_BN), places))


def some_places(places: Places, start: int, count: int) -> Places:
    """A piece of a plane, in raster order."""
    if start == 0 and count == len(places):
        return places
    if start + count > len(places):
        raise MiradaError(f"pixel {start + count} of an image of {len(places)} pixels: there is no such place")
    piece = slice(start, start + count)
    return Places(places.index_N[piece], places.coords_NA[piece], places.size)
