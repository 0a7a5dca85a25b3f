"""Decoder layers and stacks: equal to torch's, causal, blind to padding, equal with and without a cache."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mirada.core import Cache
from tests.nn.torch_layers import (
    DIM,
    EXACT,
    assert_same_result_and_gradients,
    copy,
    decoder,
    decoder_layer,
    encoder,
    of_decoder_layer,
    of_encoder_layer,
    of_stack,
    shake,
    torch_layer,
)

B, N, M = 3, 7, 11
NORM_FIRST = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
FUTURE = torch.ones(N, N, dtype=torch.bool).triu(1)


def target_and_memory() -> list[torch.Tensor]:
    return [torch.randn(B, length, DIM, dtype=torch.float64, requires_grad=True) for length in (N, M)]


def valid(*lengths: int, of: int) -> torch.Tensor:
    return torch.arange(of) < torch.tensor(lengths)[:, None]


@NORM_FIRST
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_D4_D5_layer_equals_torch_in_both_orders(norm_first, padded):
    theirs, ours = torch_layer(nn.TransformerDecoderLayer, norm_first), decoder_layer(norm_first)
    pairs = of_decoder_layer(ours, theirs)
    copy(pairs, ours)
    x, memory = target_and_memory()
    real, memory_real = valid(N, 3, 5, of=N), valid(2, M, 7, of=M)
    if padded:
        out = ours(x, memory, valid_BN=real, memory_valid_BM=memory_real)
        expected = theirs(
            x, memory, tgt_mask=FUTURE, tgt_key_padding_mask=~real, memory_key_padding_mask=~memory_real
        )  # fmt: skip
    else:
        out, expected = ours(x, memory), theirs(x, memory, tgt_mask=FUTURE)
    assert_same_result_and_gradients(out, expected, [x, memory], pairs)


@NORM_FIRST
def test_G4_stack_equals_torch(norm_first):
    theirs = nn.TransformerDecoder(
        torch_layer(nn.TransformerDecoderLayer, norm_first), 3, nn.LayerNorm(DIM, dtype=torch.float64)
    )
    shake(theirs)
    ours, (x, memory) = decoder(norm_first), target_and_memory()
    pairs = of_stack(ours, theirs, of_decoder_layer)
    copy(pairs, ours)
    assert_same_result_and_gradients(ours(x, memory), theirs(x, memory, tgt_mask=FUTURE), [x, memory], pairs)


@NORM_FIRST
def test_G5_encoder_and_decoder_equal_torch_transformer(norm_first):
    theirs = nn.Transformer(
        DIM, 7, 2, 2, 23, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64,
        custom_encoder=nn.TransformerEncoder(
            torch_layer(nn.TransformerEncoderLayer, norm_first), 2, nn.LayerNorm(DIM, dtype=torch.float64),
            enable_nested_tensor=False,
        ),
    )  # fmt: skip
    shake(theirs)
    writer, reader = decoder(norm_first, depth=2), encoder(norm_first, depth=2)
    copy(of_stack(reader, theirs.encoder, of_encoder_layer), reader)
    copy(of_stack(writer, theirs.decoder, of_decoder_layer), writer)
    x, source = target_and_memory()
    torch.testing.assert_close(writer(x, reader(source)), theirs(source, x, tgt_mask=FUTURE), **EXACT)


def test_G4_E46_the_encoder_is_trained_through_the_decoder():
    reader, writer = encoder(True, depth=2), decoder(True, depth=2)
    x, source = target_and_memory()
    writer(x, reader(source)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for name, p in reader.named_parameters()
               if not name.endswith("to_k.bias"))  # fmt: skip


@NORM_FIRST
@pytest.mark.parametrize("chunks", [[1] * N, [3, 1, 2, 1]])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_cached_decoding_equals_uncached(norm_first, chunks, padded):
    model, (x, memory) = decoder(norm_first), target_and_memory()
    real = valid(N, 4, 2, of=N) if padded else None
    memory_real = valid(5, M, 1, of=M) if padded else None
    cache, steps, seen = Cache(), [], 0
    with torch.no_grad():
        expected = model(x, memory, valid_BN=real, memory_valid_BM=memory_real)
        for part in x.split(chunks, dim=1):
            seen += part.shape[1]
            so_far = None if real is None else real[:, :seen]
            steps.append(model(part, memory, valid_BN=so_far, memory_valid_BM=memory_real, cache=cache))
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **EXACT)


def test_F_causal_no_target_sees_a_later_one():
    model, (x, memory) = decoder(True), target_and_memory()
    for t in range(N):
        (into_x,) = torch.autograd.grad(model(x, memory)[:, t].sum(), x)
        assert into_x[:, t + 1 :].abs().max() == 0 if t + 1 < N else into_x.abs().max() > 0


@NORM_FIRST
def test_padding_of_target_and_memory_does_not_change_real_tokens(norm_first):
    model, (x, memory) = decoder(norm_first), target_and_memory()
    lengths, memory_lengths = (N, 3, 5), (2, M, 7)
    out = model(x, memory, valid_BN=valid(*lengths, of=N), memory_valid_BM=valid(*memory_lengths, of=M))
    for row, (n, m) in enumerate(zip(lengths, memory_lengths, strict=True)):
        alone = model(x[row : row + 1, :n], memory[row : row + 1, :m])
        torch.testing.assert_close(out[row : row + 1, :n], alone, **EXACT)
