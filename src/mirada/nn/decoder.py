"""Layers of causal self-attention, attention to a memory, and MLP, stacked.

Shape letters: B batch, N tokens of the target, M tokens of the memory, D model dim.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from mirada.core import Cache, Places
from mirada.nn.residual import Wrap


class DecoderLayer(nn.Module):
    """h = R(attention)(x),  c = R(cross)(h, memory),  y = R(mlp)(c), R the kind of residual (Vaswani 2017, fig. 1).

        DecoderLayer(Attention(heads, neighbours=causal()), Attention(other_heads), MLP(dim, hidden_dim), residual)

    `attention` looks at earlier targets only if it is given `neighbours=causal()`.
    """

    def __init__(self, attention: nn.Module, cross: nn.Module, mlp: nn.Module, residual: Wrap) -> None:
        super().__init__()
        self.attention = residual(attention)
        self.cross = residual(cross)
        self.mlp = residual(mlp)

    def forward(
        self,
        x_BND: Tensor,
        memory_BMD: Tensor,
        *,
        valid_BN: Tensor | None = None,
        memory_valid_BM: Tensor | None = None,
        places: Places | None = None,
        memory_places: Places | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """True in `valid_BN`, `memory_valid_BM` is a real token; with a cache `valid_BN` covers all targets so far."""
        x_BND = self.attention(x_BND, valid_BM=valid_BN, places=places, cache=cache)
        x_BND = self.cross(
            x_BND, memory_BMD, valid_BM=memory_valid_BM, places=places, memory_places=memory_places, cache=cache
        )
        return self.mlp(x_BND)


class Decoder(nn.Module):
    """y = norm(layer_depth(… layer_1(x, memory), memory)): all layers look at one memory, the encoder's last output.

    Layers with pre-norm need `norm`; layers with post-norm need none. With a cache, give only the tokens not yet seen.
    """

    def __init__(self, layers: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    def forward(
        self,
        x_BND: Tensor,
        memory_BMD: Tensor,
        *,
        valid_BN: Tensor | None = None,
        memory_valid_BM: Tensor | None = None,
        places: Places | None = None,
        memory_places: Places | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        for layer in self.layers:
            x_BND = layer(
                x_BND,
                memory_BMD,
                valid_BN=valid_BN,
                memory_valid_BM=memory_valid_BM,
                places=places,
                memory_places=memory_places,
                cache=cache,
            )
        return self.norm(x_BND)
