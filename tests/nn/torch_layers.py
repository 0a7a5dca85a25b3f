"""Our layers beside torch's: pairs of parameters (ours, torch's) that are copied and whose gradients must agree."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mirada.core import Attention, Concatenated, causal
from mirada.nn import MLP, Decoder, DecoderLayer, Encoder, EncoderLayer, post_norm, pre_norm

DIM, HEADS, HIDDEN = 14, 7, 23
EXACT = {"atol": 1e-9, "rtol": 1e-7}  # in float64; the requirement is 1e-6

# Ours, torch's, and which third of torch's in-projection.
Pair = tuple[nn.Parameter, nn.Parameter, slice]
ALL = slice(None)


def residual(norm_first: bool):
    return (pre_norm if norm_first else post_norm)(lambda: nn.LayerNorm(DIM))


def encoder_layer(norm_first: bool) -> EncoderLayer:
    return EncoderLayer(Attention(Concatenated(DIM, HEADS)), MLP(DIM, HIDDEN, nn.ReLU()), residual(norm_first)).double()


def decoder_layer(norm_first: bool) -> DecoderLayer:
    return DecoderLayer(
        Attention(Concatenated(DIM, HEADS), neighbours=causal()),
        Attention(Concatenated(DIM, HEADS)),
        MLP(DIM, HIDDEN, nn.ReLU()),
        residual(norm_first),
    ).double()


def encoder(norm_first: bool, depth: int = 3) -> Encoder:
    return Encoder([encoder_layer(norm_first) for _ in range(depth)], nn.LayerNorm(DIM).double())


def decoder(norm_first: bool, depth: int = 3) -> Decoder:
    return Decoder([decoder_layer(norm_first) for _ in range(depth)], nn.LayerNorm(DIM).double())


def torch_layer(kind: Callable[..., nn.Module], norm_first: bool) -> nn.Module:
    layer = kind(DIM, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64)
    shake(layer)
    return layer


def shake(module: nn.Module) -> None:
    """Biases and gains that are not zero and one, so that a missing one shows."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)


def same(ours: nn.Module, theirs: nn.Module) -> list[Pair]:
    """The same parameters in the same order."""
    return [(a, b, ALL) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True)]


def of_attention(ours: Attention, theirs: nn.MultiheadAttention) -> list[Pair]:
    pairs, dim = same(ours.heads.to_out, theirs.out_proj), theirs.embed_dim
    for third, projection in enumerate((ours.heads.to_q, ours.heads.to_k, ours.heads.to_v)):
        rows = slice(third * dim, (third + 1) * dim)
        pairs += [(projection.weight, theirs.in_proj_weight, rows), (projection.bias, theirs.in_proj_bias, rows)]
    return pairs


def of_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> list[Pair]:
    return [
        *of_attention(ours.attention.inner, theirs.self_attn),
        *same(ours.attention.norm, theirs.norm1),
        *same(ours.mlp.inner.expand, theirs.linear1),
        *same(ours.mlp.inner.contract, theirs.linear2),
        *same(ours.mlp.norm, theirs.norm2),
    ]


def of_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> list[Pair]:
    return [
        *of_attention(ours.attention.inner, theirs.self_attn),
        *same(ours.attention.norm, theirs.norm1),
        *of_attention(ours.cross.inner, theirs.multihead_attn),
        *same(ours.cross.norm, theirs.norm2),
        *same(ours.mlp.inner.expand, theirs.linear1),
        *same(ours.mlp.inner.contract, theirs.linear2),
        *same(ours.mlp.norm, theirs.norm3),
    ]


def of_stack(ours: Encoder | Decoder, theirs: nn.Module, of_layer) -> list[Pair]:
    pairs = same(ours.norm, theirs.norm)
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):
        pairs += of_layer(our_layer, their_layer)
    return pairs


def copy(pairs: list[Pair], ours: nn.Module) -> None:
    assert {id(a) for a, _, _ in pairs} == {id(p) for p in ours.parameters()}, "a parameter of ours has no partner"
    with torch.no_grad():
        for our, their, rows in pairs:
            our.copy_(their[rows])


def assert_same_result_and_gradients(
    out: Tensor, expected: Tensor, inputs: list[Tensor], pairs: list[Pair], tolerance: dict[str, float] = EXACT
) -> None:
    torch.testing.assert_close(out, expected, **tolerance)
    direction = torch.randn_like(expected)
    into_ours = torch.autograd.grad(out, [*inputs, *(our for our, _, _ in pairs)], direction)
    into_theirs = torch.autograd.grad(expected, [*inputs, *(their for _, their, _ in pairs)], direction)
    rows = [*(ALL for _ in inputs), *(part for _, _, part in pairs)]
    for our, their, part in zip(into_ours, into_theirs, rows, strict=True):
        torch.testing.assert_close(our, their[part], **tolerance)
