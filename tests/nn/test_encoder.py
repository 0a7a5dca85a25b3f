"""Encoder layers and stacks: equal to torch's, blind to padding, equivariant without positions, recordable, cached."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from mirada.core import Attention, Cache, Concatenated, Rotary, causal, line, record
from mirada.nn import MLP, Encoder, EncoderLayer, LayerScale, StochasticDepth, pre_norm
from tests.nn.torch_layers import (
    DIM,
    EXACT,
    assert_same_result_and_gradients,
    copy,
    encoder,
    encoder_layer,
    of_encoder_layer,
    of_stack,
    shake,
    torch_layer,
)

B, N = 3, 11
NORM_FIRST = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])


def tokens() -> torch.Tensor:
    return torch.randn(B, N, DIM, dtype=torch.float64, requires_grad=True)


def padding() -> torch.Tensor:
    return torch.arange(N) < torch.tensor([N, 5, 7])[:, None]


@NORM_FIRST
@pytest.mark.parametrize("valid", [None, padding()], ids=["whole", "padded"])
def test_D4_D5_E38_layer_equals_torch_in_both_orders(norm_first, valid):
    theirs, ours, x = torch_layer(nn.TransformerEncoderLayer, norm_first), encoder_layer(norm_first), tokens()
    pairs = of_encoder_layer(ours, theirs)
    copy(pairs, ours)
    expected = theirs(x, src_key_padding_mask=None if valid is None else ~valid)
    assert_same_result_and_gradients(ours(x, valid_BM=valid), expected, [x], pairs)


def test_E38_the_two_orders_are_different_functions():
    pre, post, x = encoder_layer(True), encoder_layer(False), tokens()
    post.load_state_dict(pre.state_dict())
    assert (pre(x) - post(x)).abs().max() > 0.1


@NORM_FIRST
def test_G3_stack_with_final_norm_equals_torch(norm_first):
    theirs = nn.TransformerEncoder(
        torch_layer(nn.TransformerEncoderLayer, norm_first),
        num_layers=3,
        norm=nn.LayerNorm(DIM, dtype=torch.float64),
        enable_nested_tensor=False,
    )
    shake(theirs)
    ours, x, valid = encoder(norm_first), tokens(), padding()
    pairs = of_stack(ours, theirs, of_encoder_layer)
    copy(pairs, ours)
    assert_same_result_and_gradients(ours(x, valid_BM=valid), theirs(x, src_key_padding_mask=~valid), [x], pairs)


def test_D4_without_a_final_norm_pre_norm_output_grows_with_depth():
    scale = {}
    for depth in (2, 32):
        layers = [encoder_layer(norm_first=True) for _ in range(depth)]
        scale[depth] = Encoder(layers)(tokens()).std()
        torch.testing.assert_close(
            Encoder(layers, nn.LayerNorm(DIM, dtype=torch.float64))(tokens()).std(), torch.tensor(1.0).double(),
            atol=0.02, rtol=0,
        )  # fmt: skip
    assert scale[32] > 2 * scale[2]


@NORM_FIRST
@settings(max_examples=20)
@given(lengths=st.lists(st.integers(1, N), min_size=B, max_size=B), seed=st.integers(0, 99))
def test_padding_does_not_change_real_tokens(norm_first, lengths, seed):
    torch.manual_seed(seed)
    model, x = encoder(norm_first, depth=2), tokens()
    valid = torch.arange(N) < torch.tensor(lengths)[:, None]
    out = model(x, valid_BM=valid)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(out[row, :length], model(x[row : row + 1, :length])[0], **EXACT)


@NORM_FIRST
@settings(max_examples=20)
@given(order=st.permutations(range(N)))
def test_B28_without_positions_the_encoder_commutes_with_any_order(norm_first, order):
    model, x = encoder(norm_first, depth=2), tokens()
    torch.testing.assert_close(model(x[:, order]), model(x)[:, order], **EXACT)


def test_B28_with_positions_it_does_not():
    attention = Attention(Concatenated(DIM, 1), position=Rotary(DIM))
    model = EncoderLayer(attention, MLP(DIM, 5), pre_norm(lambda: nn.LayerNorm(DIM))).double()
    x, order = tokens(), torch.arange(N).flip(0)
    assert (model(x[:, order]) - model(x)[:, order]).abs().max() > 1e-3


def decoder_only(depth: int = 2) -> Encoder:
    layers = [
        EncoderLayer(
            Attention(Concatenated(12, 3), neighbours=causal(), position=Rotary(4)),
            MLP(12, 29),
            pre_norm(lambda: nn.LayerNorm(12), lambda: nn.Sequential(LayerScale(12, 0.5), StochasticDepth(0.3))),
        )
        for _ in range(depth)
    ]
    return Encoder(layers, nn.LayerNorm(12)).double().eval()


@pytest.mark.parametrize("chunks", [[1] * N, [5, 1, 3, 2], [N]])
def test_cached_equals_uncached_in_a_decoder_only_stack(chunks):
    model, x, cache = decoder_only(), torch.randn(B, N, 12, dtype=torch.float64), Cache()
    with torch.no_grad():
        steps = [model(part, cache=cache) for part in x.split(chunks, dim=1)]
        torch.testing.assert_close(torch.cat(steps, dim=1), model(x), **EXACT)


def test_context_reaches_the_attention_of_every_layer():
    model, x = decoder_only(), torch.randn(B, N, 12, dtype=torch.float64)
    torch.testing.assert_close(model(x, places=line(N)), model(x), **EXACT)
    # Rotary scores depend on differences of places only, so stretching, not shifting, must show.
    places = line(2 * N)
    stretched = type(places)(places.index_N[::2], places.coords_NA[::2], places.size)
    assert (model(x, places=stretched) - model(x)).abs().max() > 1e-3
    with record(model) as maps:
        model(x)
    assert list(maps) == ["layers.0.attention.inner.attend", "layers.1.attention.inner.attend"]
    for name in maps:
        torch.testing.assert_close(maps[name].sum(-1), torch.ones(B, 3, N, dtype=torch.float64), **EXACT)
