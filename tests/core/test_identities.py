"""Identities that prove the core is one: different parts that must give the same numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mirada.core import (
    Attend,
    Attention,
    Averaged,
    BiasTable,
    Collaborative,
    Concatenated,
    Dot,
    Edges,
    Fixed,
    Grid,
    Mask,
    ReAttention,
    ScaledDot,
    Strided,
    Windows,
    causal,
    full,
    heads,
    kernels,
    plane,
    record,
    window,
)  # fmt: skip
from mirada.core.kernels import edge_list, reference
from mirada.core.kernels.call import Call

B, H, N, K, V, D = 2, 3, 35, 4, 11, 12
HEIGHT, WIDTH = 5, 7


def qkv() -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(B, H, N, width, dtype=torch.float64) for width in (K, K, V))


@pytest.mark.parametrize("kernel", ["block local", "fused", "reference"])
@pytest.mark.parametrize("reach", [N - 1, N, 3 * N])
def test_a_window_as_wide_as_the_sequence_is_full(kernel, reach):
    q, k, v = qkv()
    with kernels.forced(kernel):
        out = Attend(neighbours=window(reach))(q, k, v)
    torch.testing.assert_close(out, Attend()(q, k, v))


@pytest.mark.parametrize(
    ("rule", "same"),
    [
        (window(N) & causal(), causal()),
        (Strided(N), causal()),
        (Strided(1), causal()),
        (Fixed(N, 1), causal()),
        (Fixed(6, 6), causal()),
        (Grid(max(HEIGHT, WIDTH)), full()),
        (Windows((HEIGHT, WIDTH)), full()),
        (Windows((HEIGHT + 2, WIDTH + 4)), full()),
    ],
    ids=str,
)
def test_patterns_wide_enough_are_full_or_causal(rule, same):
    q, k, v = qkv()
    places = plane(HEIGHT, WIDTH) if isinstance(rule, Grid | Windows) else None
    out = Attend(neighbours=rule)(q, k, v, queries=places, keys=places)
    torch.testing.assert_close(out, Attend(neighbours=same)(q, k, v))


@pytest.mark.parametrize(
    "rule", [causal(), window(3), Strided(6), Fixed(6, 2), Grid(1), Windows((3, 2), (1, 1))], ids=str
)
def test_every_neighbourhood_is_a_graph_and_a_mask(rule):
    """The same rule as a pattern, as a mask and as a list of edges: outputs and weights."""
    layer = Attention(Concatenated(D, H)).double()
    x = torch.randn(B, N, D, dtype=torch.float64)
    places = plane(HEIGHT, WIDTH)
    allowed = rule.allowed(places, places)
    edges = Edges(allowed.nonzero().T, N, N)
    outputs, maps = [], []
    for form in (rule, Mask(allowed), edges):
        with record(layer) as recorded:
            outputs.append(layer(x, places=places, neighbours=form))
        maps.append(edges.dense(recorded[0]) if form is edges else recorded[0])
    for out, weights in zip(outputs[1:], maps[1:], strict=True):
        torch.testing.assert_close(out, outputs[0])
        torch.testing.assert_close(weights, maps[0])


def test_B20_depthwise_convolution_is_attention_on_a_grid_with_fixed_weights():
    """ψ_v = id, one head per channel, α_{h,w} given and unbounded: equals conv2d(groups=C). E19."""
    channels = 3
    image = torch.randn(B, channels, HEIGHT, WIDTH, dtype=torch.float64)
    kernel = torch.randn(channels, 1, 3, 3, dtype=torch.float64)
    bias = torch.randn(channels, dtype=torch.float64)
    expected = F.conv2d(image, kernel, bias, padding=1, groups=channels)

    places = plane(HEIGHT, WIDTH)
    edges = Edges(Grid(1).allowed(places, places).nonzero().T, N, N)
    i, j = edges.edge_2E
    offset = places.coords_NA[j] - places.coords_NA[i] + 1
    weights_BHE = kernel[:, 0, offset[:, 0], offset[:, 1]].expand(B, -1, -1)
    x_BHN1 = image.flatten(2)[..., None]
    call = Call(x_BHN1, x_BHN1, x_BHN1, Dot(), edges)
    for out in (edge_list.combine(call, weights_BHE), reference.combine(call, edges.dense(weights_BHE))):
        torch.testing.assert_close(out[..., 0].unflatten(-1, (HEIGHT, WIDTH)) + bias.view(-1, 1, 1), expected)


def test_B20_relative_positions_with_a_sharp_peak_reproduce_any_3x3_convolution():
    """Nine heads, each at one offset of the kernel; W^V and W^O carry its matrix (Cordonnier 2020, theorem 1)."""
    in_channels, out_channels, sharpness = 3, 5, 60.0
    image = torch.randn(B, in_channels, HEIGHT, WIDTH, dtype=torch.float64)
    convolution = nn.Conv2d(in_channels, out_channels, 3, padding=1).double()

    position = BiasTable((HEIGHT, WIDTH), num_heads=9)
    layer = Attention(
        Concatenated(in_channels, 9, head_dim=1, value_dim=in_channels, out_dim=out_channels, bias=False),
        position=position,
    ).double()
    back = torch.stack(
        torch.meshgrid(torch.arange(1 - HEIGHT, HEIGHT), torch.arange(1 - WIDTH, WIDTH), indexing="ij"), dim=-1
    ).flatten(0, 1)  # place_i − place_j, in the order of the table
    with torch.no_grad():
        layer.heads.to_q.weight.zero_()
        layer.heads.to_v.weight.copy_(torch.eye(in_channels).repeat(9, 1))
        layer.heads.to_out.bias.copy_(convolution.bias)
        layer.heads.to_out.weight.copy_(convolution.weight.permute(0, 2, 3, 1).flatten(1))
        for head, offset in enumerate(torch.cartesian_prod(torch.arange(-1, 2), torch.arange(-1, 2))):
            position.table[:, head] = -sharpness * (-back - offset).square().sum(-1)
    out = layer(image.flatten(2).mT, places=plane(HEIGHT, WIDTH)).mT.unflatten(-1, (HEIGHT, WIDTH))
    inside = (..., slice(1, -1), slice(1, -1))
    torch.testing.assert_close(out[inside], convolution(image)[inside], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(out, convolution(image), atol=1e-2)  # the border is not padded with zeros


@pytest.mark.parametrize("kind", [Concatenated, Averaged, Collaborative, ReAttention])
@pytest.mark.parametrize("bias", [True, False])
def test_one_product_for_queries_keys_and_values_equals_three(kind, bias, monkeypatch):
    layer = Attention(kind(D, H, bias=bias)).double().eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(B, N, D, dtype=torch.float64)
    monkeypatch.setattr(heads, "MIN_ROWS_FOR_ONE_PRODUCT", 10**9)
    three = layer(x)
    monkeypatch.setattr(heads, "MIN_ROWS_FOR_ONE_PRODUCT", 1)
    torch.testing.assert_close(layer(x), three)
    torch.testing.assert_close(layer(x, x), three)


def test_attention_on_nothing_but_itself_is_the_value():
    q, k, v = qkv()
    torch.testing.assert_close(Attend(neighbours=window(0))(q, k, v), v)
    alone = Edges(torch.arange(N).expand(2, -1), N, N)
    torch.testing.assert_close(Attend(neighbours=alone)(q, k, v), v)


def test_equal_keys_give_the_mean_of_the_values():
    q, k, v = qkv()
    out = Attend(ScaledDot())(q, k[:, :, :1].expand_as(k), v)
    torch.testing.assert_close(out, v.mean(2, keepdim=True).expand(-1, -1, N, -1))
