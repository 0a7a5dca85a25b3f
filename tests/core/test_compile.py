"""Layers are compiled and exported whole, for every batch size, whatever kernel serves them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada.core import (
    Additive,
    Attention,
    BiasTable,
    Concatenated,
    Edges,
    Grid,
    Rotary,
    Shaw,
    Strided,
    Windows,
    causal,
    plane,
    record,
    window,
)  # fmt: skip

B, H, N, K, D = 2, 3, 35, 4, 12

PARTS = {
    "fused": {},
    "fused, causal": {"neighbours": causal(), "position": Rotary(K)},
    "fused, with a bias": {"position": Shaw(K, 2)},
    "block local": {"neighbours": window(2)},
    "block sparse": {"neighbours": Strided(6)},
    "block grid": {"neighbours": Grid(1), "position": BiasTable((5, 7), H)},
    "block grid, windows": {"neighbours": Windows((3, 2), (1, 1))},
    "edge list": {"neighbours": Edges(torch.arange(N).repeat(2, 2)[:, : N + 3], N, N)},
    "reference": {"score": Additive(K, K, 5, H)},
}
each_kernel = pytest.mark.parametrize("name", PARTS)


class OnPlaces(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.attention = Attention(Concatenated(D, H), **PARTS[name])
        self.places = plane(5, 7) if "grid" in name else None

    def forward(self, x_BND: torch.Tensor) -> torch.Tensor:
        return self.attention(x_BND, places=self.places)


@each_kernel
def test_exported_for_every_batch_size(name):
    model = OnPlaces(name).eval()
    batch = torch.export.Dim("batch")
    exported = torch.export.export(model, (torch.randn(B, N, D),), dynamic_shapes=({0: batch},)).module()
    for size in (1, 3, 41):  # 41 · 35 rows are beyond the length from which three projections become one product
        x = torch.randn(size, N, D)
        torch.testing.assert_close(exported(x), model(x))


@each_kernel
def test_compiled_in_one_piece_and_recorded(name):
    model, x = OnPlaces(name).eval(), torch.randn(B, N, D)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), model(x))
    with record(model) as expected:
        model(x)
    torch._dynamo.reset()
    in_pieces = torch.compile(model, backend="eager")
    with torch.no_grad(), record(model) as maps:
        torch.testing.assert_close(in_pieces(x), model(x))
    torch.testing.assert_close(maps.every(0)[0], expected[0])
