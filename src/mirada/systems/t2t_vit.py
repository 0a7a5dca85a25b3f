"""Tokens-to-token ViT: overlapping patches are split softly, look at each other and are split again (Yuan 2021).

    T_0 = unfold(x),   I_i = image(transformer(T_i)),   T_{i+1} = unfold(I_i),   z_0 = [x_class; W T_2] + PE

    transformer(T):  h = V + Att(Q, K, V) W^O,   y = h + MLP(LN(h)),   Q, K, V from LN(T)

The widths of T and y differ, so the direct path around attention starts at V. A deep, narrow encoder follows.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from mirada.core import (
    Attend,
    Attention,
    Concatenated,
    Places,
    RandomFeatures,
    ScaledDot,
    Score,
    Sinusoidal,
    line,
    plane,
)
from mirada.nn import (
    MLP,
    ClassToken,
    Encoder,
    EncoderLayer,
    ExtraTokens,
    PreNorm,
    StochasticDepth,
    image_of,
    pre_norm,
    rising_rates,
)
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size, fit
from mirada.systems.deepvit import start_small
from mirada.systems.registry import Card, one_of, register
from mirada.systems.vit import derived_patch_size

Strides = tuple[int, int, int]
NARROW: dict[str, object] = {"dim": 256, "num_heads": 4, "mlp_ratio": 2.0, "strides": (4, 2, 2)}
BY_DEPTH: dict[str, dict[str, object]] = {
    "7": {**NARROW, "depth": 7},
    "10": {**NARROW, "depth": 10},
    "12": {**NARROW, "depth": 12},
    "14": {"dim": 384, "depth": 14, "num_heads": 6, "mlp_ratio": 3.0, "strides": (4, 2, 2)},
    "19": {"dim": 448, "depth": 19, "num_heads": 7, "mlp_ratio": 3.0, "strides": (4, 2, 2)},
    "24": {"dim": 512, "depth": 24, "num_heads": 8, "mlp_ratio": 3.0, "strides": (4, 2, 2)},
}


@register(
    Card(
        name="t2t_vit",
        title="Tokens-to-Token ViT",
        summary="Neighbouring tokens are merged step by step before a deep and narrow transformer looks at them.",
        paper="Yuan et al., Tokens-to-Token ViT: Training Vision Transformers from Scratch on ImageNet, 2021",
        inputs="image",
        parts={
            "score": "scaled dot; in the splits random features (Performer)",
            "neighbours": "full",
            "position": "sinusoidal",
            "heads": "concatenated",
        },
        sizes={
            "nano": {"dim": 96, "depth": 4, "num_heads": 3, "mlp_ratio": 2.0, "token_dim": 32},
            "micro": {"dim": 128, "depth": 6, "num_heads": 4, "mlp_ratio": 2.0, "token_dim": 32},
            **BY_DEPTH,
            **{f"t-{depth}": {**BY_DEPTH[depth], "tokens": "transformer"} for depth in ("14", "19", "24")},
        },
        default_size="micro",
        when_to_use="From scratch on middling data, where hard patches would cut edges and lines apart.",
        tiny={"dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "token_dim": 8, "strides": (2, 2, 1)},
    )
)
class T2TViT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    token_dim    width of the tokens between the splits
    tokens       "performer": attention between the splits by random features, at a cost linear in the tokens;
                 "transformer": by the scaled dot product (the sizes t-14 …)
    strides      of the three splits, whose windows are 2·stride − 1 pixels wide, at least 3; None: those that give at
                 most 100 tokens at `image_size`. Sides that are no multiple of a stride are padded with zeros
    score_scale  of the encoder's dot products; None: 1/√head_dim. The released weights were trained with 1/√dim

    Positions are sines of the raster number, 0 for the class token. They and the random features are fixed: functions
    and buffers here, which the published totals count as parameters. Started as in the published code: weights and
    class token normal(0, 0.02), biases zero. There the Performer also drops 10 % of its outputs; here `dropout` does.
    """

    num_extra = 1

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 384,
        depth: int = 14,
        num_heads: int = 6,
        mlp_ratio: float = 3.0,
        token_dim: int = 64,
        tokens: str = "performer",
        strides: Strides | None = None,
        score_scale: float | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.strides = derived_strides(as_size(image_size)) if strides is None else tuple(strides)
        token_layer = one_of("tokens", tokens, {"performer": token_performer, "transformer": token_transformer})
        channels = (in_channels, token_dim, token_dim)
        widths = [count * window(stride) ** 2 for count, stride in zip(channels, self.strides, strict=True)]
        self.token_layers = nn.ModuleList(token_layer(width, token_dim, dropout) for width in widths[:-1])
        self.project = nn.Linear(widths[-1], dim)
        self.extra = ExtraTokens(dim)
        self.position = Sinusoidal(dim)
        self.dropout = Dropout(dropout)

        def layer(rate: float) -> EncoderLayer:
            return EncoderLayer(
                Attention(Concatenated(dim, num_heads, bias=False), score=ScaledDot(score_scale)),
                MLP(dim, int(dim * mlp_ratio), dropout=dropout),
                pre_norm(lambda: nn.LayerNorm(dim), lambda: nn.Sequential(Dropout(dropout), StochasticDepth(rate))),
            )

        self.encoder = Encoder(map(layer, rising_rates(drop_path, depth)), nn.LayerNorm(dim))
        self.pooling = ClassToken()
        self.head = nn.Linear(dim, num_classes)
        self.apply(start_small)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of the encoder's tokens."""
        return self.grids(images_BCHW)[-1]

    def grids(self, images_BCHW: Tensor) -> list[Size]:
        """Rows and columns of the tokens of each split."""
        sizes = [(images_BCHW.shape[-2], images_BCHW.shape[-1])]
        for stride in self.strides:
            sizes.append((-(-sizes[-1][0] // stride), -(-sizes[-1][1] // stride)))
        return sizes[1:]

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: the class token, (B, dim)."""
        x_BND = self.dropout(self.extra(self.project(self.split(images_BCHW))))
        x_BND = self.position(x_BND, line(x_BND.shape[1], device=x_BND.device))
        places = plane(*self.grid(images_BCHW), self.num_extra, device=x_BND.device)
        return self.pooling(self.encoder(x_BND, places=places))

    def split(self, images_BCHW: Tensor) -> Tensor:
        """The numbers of the last split's windows, in raster order."""
        for layer, stride, grid in zip(self.token_layers, self.strides, self.grids(images_BCHW), strict=False):
            places = plane(*grid, device=images_BCHW.device)
            images_BCHW = image_of(layer(soft_split(images_BCHW, stride), places), grid, 1)
        return soft_split(images_BCHW, self.strides[-1])


def window(stride: int) -> int:
    """The published pairs: 7 pixels every 4, 3 pixels every 2."""
    return max(3, 2 * stride - 1)


def soft_split(image_BCHW: Tensor, stride: int) -> Tensor:
    """(B, C, H, W) → (B, N, C·k·k): overlapping windows of k × k pixels, one every `stride` pixels."""
    size = window(stride)
    image_BCHW = fit(image_BCHW, stride, "pad")
    return F.unfold(image_BCHW, size, padding=(size - stride + 1) // 2, stride=stride).mT


def derived_strides(image_size: Size) -> Strides:
    """4 = 2·2·1, 8 = 2·2·2, 16 = 4·2·2 …: as `vit` derives its patches."""
    whole = derived_patch_size(image_size)
    last = 2 if whole >= 8 else 1
    middle = 2 if whole >= 4 else 1
    return whole // (middle * last), middle, last


class TokenAttention(nn.Module):
    """h = V + Att(Q, K, V) W^O, from D numbers per token to K, in one head."""

    def __init__(self, dim: int, token_dim: int, score: Score, *, bias: bool, dropout: float) -> None:
        super().__init__()
        self.heads = Concatenated(dim, 1, head_dim=token_dim, out_dim=token_dim, bias=bias)
        self.attend = Attend(score)
        self.dropout = Dropout(dropout)

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:
        q_B1NK, k_B1NK, v_B1NK = self.heads.project(x_BND)
        seen_B1NK = self.attend(q_B1NK, k_B1NK, v_B1NK, queries=places, keys=places)
        return v_B1NK[:, 0] + self.dropout(self.heads.join(seen_B1NK))


class TokenLayer(nn.Sequential):
    """y = h + MLP(LN(h)),   h = attention(LN(x))"""

    def forward(self, x_BND: Tensor, places: Places) -> Tensor:  # type: ignore[override]
        norm, attention, mlp = self
        return mlp(attention(norm(x_BND), places))


def token_layer(dim: int, token_dim: int, attention: TokenAttention, dropout: float) -> TokenLayer:
    mlp = PreNorm(MLP(token_dim, token_dim), nn.LayerNorm(token_dim), Dropout(dropout))
    return TokenLayer(nn.LayerNorm(dim), attention, mlp)


def token_transformer(dim: int, token_dim: int, dropout: float) -> TokenLayer:
    # The published scale is of the width that comes in, not of the queries.
    attention = TokenAttention(dim, token_dim, ScaledDot(dim**-0.5), bias=False, dropout=dropout)
    return token_layer(dim, token_dim, attention, dropout)


def token_performer(dim: int, token_dim: int, dropout: float) -> TokenLayer:
    """Half as many features as channels; unscaled dot products, and rows as long as the published code makes them."""
    num_features = token_dim // 2
    score = RandomFeatures(token_dim, num_features, scale=1.0, norm=num_features**0.5)
    return token_layer(dim, token_dim, TokenAttention(dim, token_dim, score, bias=True, dropout=dropout), dropout)
