"""MViTv2: attention between pooled queries, keys and values, on grids that get coarser and wider (Li 2022).

    q = P_Q(X W^Q), k = P_K(X W^K), v = P_V(X W^V),   P = LN of a depthwise 3×3 convolution with a stride
    Z = softmax(q kᵀ/√K + q·R^h_{Δrow} + q·R^w_{Δcolumn}) v + q,   x ← pool(x) + Z W^O,   x ← x + MLP(LN(x))

The first layer of each further stage pools its queries by 2 and doubles the width. Keys and values are pooled by 4 in
the first stage, by 2 in the second: every layer looks at about as many keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from mirada.errors import MiradaError
from mirada.nn import MLP, Mean, StochasticDepth, rising_rates
from mirada.nn.dropout import Dropout
from mirada.nn.patches import Size, as_size
from mirada.nn.pooled_attention import PooledAttention, halved
from mirada.systems.cvt import first_stride
from mirada.systems.registry import Card, one_of, register
from mirada.systems.swin import start

Widths = tuple[int, int, int]  # into a layer, out of its attention, out of its MLP
EPS = 1e-6


@register(
    Card(
        name="mvit",
        title="MViTv2",
        summary="Tokens look at pooled keys and values; queries are pooled too, so stages get coarser and wider.",
        paper="Li et al., MViTv2: Improved Multiscale Vision Transformers for Classification and Detection, 2022",
        inputs="image",
        parts={
            "score": "scaled dot",
            "neighbours": "full, to pooled keys",
            "position": "decomposed",
            "heads": "concatenated, pooled by convolutions",
        },
        sizes={
            "nano": {"dim": 32, "depths": (1, 1, 2), "num_heads": 1, "mlp_ratio": 2.0},
            "micro": {"dim": 48, "depths": (1, 2, 3), "num_heads": 1, "mlp_ratio": 2.0},
            "T": {"dim": 96, "depths": (1, 2, 5, 2), "num_heads": 1, "patch_size": 4},
            "S": {"dim": 96, "depths": (1, 2, 11, 2), "num_heads": 1, "patch_size": 4},
            "B": {"dim": 96, "depths": (2, 3, 16, 3), "num_heads": 1, "patch_size": 4},
            "L": {"dim": 144, "depths": (2, 6, 36, 4), "num_heads": 2, "widening": "mlp", "patch_size": 4},
        },
        default_size="nano",
        when_to_use="Images whose objects vary in size; T to L with pretrained weights. Slower per step than a ViT.",
        tiny={"dim": 8, "depths": (1, 2), "num_heads": 1, "mlp_ratio": 2.0, "patch_size": 2},
    )
)
class MViT(nn.Module):
    """Logits (B, num_classes) of images (B, in_channels, height, width), at any height and width.

    dim         channels of the first stage; each further stage has twice as many, and twice as many heads
    depths      layers of each stage             num_heads   heads of the first stage
    patch_size  stride P of the first convolution, whose side is 2P − 1; None: the power of two that gives at most 256
                tokens at `image_size`
    key_stride  of the pooling of keys and values in the first stage; each further stage has half of it, at least 1
    widening    where a stage's channels become twice as many: "attention" of its first layer; "mlp" of the last layer
                before it (L)
    drop_path   probability with which the last layer's branches are skipped; it rises from 0 at the first

    Every pooling is padded, so a side n becomes ⌈n/stride⌉; at another size the tables of positions are interpolated.
    Started as in the published code: truncated normal(0, 0.02) weights and positions, zero biases, convolutions as
    torch does.
    """

    num_extra = 0

    def __init__(
        self,
        *,
        image_size: int | Size,
        in_channels: int,
        num_classes: int,
        dim: int = 96,
        depths: Sequence[int] = (1, 2, 5, 2),
        num_heads: int = 1,
        mlp_ratio: float = 4.0,
        patch_size: int | None = None,
        key_stride: int = 4,
        widening: str = "attention",
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        if not depths or min(depths) < 1:
            raise MiradaError(f"depths={tuple(depths)}: every stage must have a layer")
        widths = one_of("widening", widening, {"attention": widened_by_attention, "mlp": widened_by_mlp})
        size = as_size(image_size)
        self.patch_size = stride = first_stride(size) if patch_size is None else patch_size
        self.patches = nn.Conv2d(in_channels, dim, 2 * stride - 1, stride, padding=stride - 1)
        grid = halved(size, stride)
        rates = iter(rising_rates(drop_path, sum(depths)))
        self.stages = nn.ModuleList()
        for stage, stage_widths in enumerate(widths(dim, depths)):
            layers = nn.ModuleList()
            for index, layer_widths in enumerate(stage_widths):
                query_stride = 2 if stage and not index else 1
                attention = PooledAttention(
                    layer_widths[0],
                    num_heads * 2**stage,
                    grid,
                    query_stride=query_stride,
                    key_stride=max(key_stride // 2**stage, 1),
                    out_dim=layer_widths[1],
                )
                layers.append(MultiscaleLayer(attention, layer_widths, mlp_ratio, dropout, next(rates)))
                grid = halved(grid, query_stride)
            self.stages.append(layers)
        self.norm = nn.LayerNorm(layer_widths[2], eps=EPS)
        self.pooling = Mean()
        self.head = nn.Linear(layer_widths[2], num_classes)
        self.apply(start)

    def grid(self, images_BCHW: Tensor) -> Size:
        """Rows and columns of the keys of the last layer."""
        grid = halved((images_BCHW.shape[-2], images_BCHW.shape[-1]), self.patch_size)
        for layer in self._layers():
            grid, of_keys = layer.attention.grids(grid)
        return of_keys

    def forward(self, images_BCHW: Tensor) -> Tensor:
        return self.head(self.features(images_BCHW))

    def features(self, images_BCHW: Tensor) -> Tensor:
        """What the head sees: (B, dim of the last stage)."""
        image_BDHW = self.patches(images_BCHW)
        x_BND, grid = image_BDHW.flatten(2).mT, (image_BDHW.shape[-2], image_BDHW.shape[-1])
        for layer in self._layers():
            x_BND, grid = layer(x_BND, grid)
        return self.pooling(self.norm(x_BND))

    def _layers(self) -> Iterator[MultiscaleLayer]:
        for stage in self.stages:
            yield from stage  # type: ignore[misc]  # a list of layers


def widened_by_attention(dim: int, depths: Sequence[int]) -> list[list[Widths]]:
    """The first layer of a stage has its attention double the width."""
    stages = []
    for stage, depth in enumerate(depths):
        width, before = dim * 2**stage, dim * 2 ** max(stage - 1, 0)
        stages.append([(width if index else before, width, width) for index in range(depth)])
    return stages


def widened_by_mlp(dim: int, depths: Sequence[int]) -> list[list[Widths]]:
    """The last layer before a stage has its MLP double the width."""
    stages = []
    for stage, depth in enumerate(depths):
        width, after = dim * 2**stage, dim * 2 ** min(stage + 1, len(depths) - 1)
        stages.append([(width, width, after if index == depth - 1 else width) for index in range(depth)])
    return stages


class MultiscaleLayer(nn.Module):
    """h = skip(x) + attention(LN(x)),   y = skip(h) + MLP(LN(h)), each width and the grid free to change.

    The skip is x itself; where the width changes it is W LN(x), as in the published code, and where the queries are
    pooled it is pooled too, by the greatest of 3 × 3.
    """

    def __init__(
        self, attention: PooledAttention, widths: Widths, mlp_ratio: float, dropout: float, drop_path: float
    ) -> None:
        super().__init__()
        dim, attention_dim, out_dim = widths
        self.attention_norm, self.attention = nn.LayerNorm(dim, eps=EPS), attention
        self.attention_skip = None if attention_dim == dim else nn.Linear(dim, attention_dim)
        stride = attention.query_stride
        self.pool = None if stride == 1 else nn.MaxPool2d(stride + 1, stride, (stride + 1) // 2)
        self.mlp_norm = nn.LayerNorm(attention_dim, eps=EPS)
        self.mlp = MLP(attention_dim, int(attention_dim * mlp_ratio), nn.GELU(), dropout=dropout, out_dim=out_dim)
        self.mlp_skip = None if out_dim == attention_dim else nn.Linear(attention_dim, out_dim)
        self.branch = nn.Sequential(Dropout(dropout), StochasticDepth(drop_path))

    def forward(self, x_BND: Tensor, grid: Size) -> tuple[Tensor, Size]:
        normed = self.attention_norm(x_BND)
        skip = x_BND if self.attention_skip is None else self.attention_skip(normed)
        if self.pool is not None:
            skip = self.pool(skip.mT.unflatten(2, grid)).flatten(2).mT
        out, grid = self.attention(normed, grid)
        x_BND = skip + self.branch(out)
        normed = self.mlp_norm(x_BND)
        skip = x_BND if self.mlp_skip is None else self.mlp_skip(normed)
        return skip + self.branch(self.mlp(normed)), grid
