"""Decoding with a cache equals the full pass, step by step or in pieces."""

from __future__ import annotations

import random

import pytest
import torch

from mirada.core import (
    Additive,
    Attention,
    BiasTable,
    Cache,
    Collaborative,
    Concatenated,
    Edges,
    Fixed,
    Places,
    ReAttention,
    Rotary,
    Shaw,
    Strided,
    beams,
    causal,
    full,
    line,
    record,
    window,
)  # fmt: skip

B, H, N, M, K, D = 2, 3, 11, 7, 4, 12


def make(heads: Concatenated | None = None, **parts) -> Attention:
    return Attention(heads or Concatenated(D, H), **{"neighbours": causal(), **parts}).double().eval()


LAYERS = {
    "plain": lambda: make(),
    "rotary, interleaved": lambda: make(position=Rotary(K)),
    "rotary, half": lambda: make(position=Rotary(K, convention="half")),
    "Shaw": lambda: make(position=Shaw(K, 2)),
    "Shaw, keys and values": lambda: make(position=Shaw(K, 2, K)),
    "bias table": lambda: make(position=BiasTable((5,), H)),
    "window": lambda: make(neighbours=window(3) & causal()),
    "window, rotary": lambda: make(neighbours=window(3) & causal(), position=Rotary(K)),
    "strided": lambda: make(neighbours=Strided(3)),
    "fixed": lambda: make(neighbours=Fixed(3, 1)),
    "a graph": lambda: make(neighbours=Edges(torch.ones(N, N).tril().nonzero().T[:, ::2], N, N)),
    "additive": lambda: make(score=Additive(K, K, 5, H)),
    "shared key heads": lambda: make(heads=Concatenated(D, 4, head_dim=K, num_key_heads=2), position=Rotary(K)),
    "collaborative": lambda: make(heads=Collaborative(D, H, shared_dim=7)),
    "re-attention": lambda: make(heads=ReAttention(D, H)),
}
each_layer = pytest.mark.parametrize("name", LAYERS)
each_split = pytest.mark.parametrize("pieces", [(1,) * N, (5, 1, 1, 1, 3), (1, 4, 6), (N,)], ids=str)


@pytest.mark.parametrize("grad", [False, True], ids=["no gradient", "gradient"])
@each_split
@each_layer
def test_decoding_in_pieces_equals_the_full_pass(name, pieces, grad):
    layer = LAYERS[name]()
    x = torch.randn(B, N, D, dtype=torch.float64)
    cache = Cache()
    with torch.set_grad_enabled(grad):
        expected = layer(x)
        out = [layer(piece, cache=cache) for piece in x.split(pieces, dim=1)]
    assert cache.length(layer) == N
    torch.testing.assert_close(torch.cat(out, dim=1), expected)


@each_layer
def test_gradients_pass_through_the_cache(name):
    layer = LAYERS[name]()
    x = torch.randn(B, N, D, dtype=torch.float64, requires_grad=True)
    cache = Cache()
    stepwise = torch.cat([layer(token, cache=cache) for token in x.split(1, dim=1)], dim=1)
    into = [x, *layer.parameters()]
    noise = torch.randn(stepwise.shape, dtype=stepwise.dtype)
    grads, expected = (torch.autograd.grad(out, into, noise, allow_unused=True) for out in (stepwise, layer(x)))
    for got, want in zip(grads, expected, strict=True):
        assert (got is None) == (want is None)
        if got is not None:
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("trained", ["to_q", "to_k", "to_v"])
def test_gradients_pass_through_the_cache_when_only_one_projection_is_trained(trained):
    """Growing in place would overwrite what the backward pass of earlier steps has kept."""
    layer = make()
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(trained in name)
    x, cache = torch.randn(B, N, D, dtype=torch.float64), Cache()
    stepwise = torch.cat([layer(token, cache=cache) for token in x.split(1, dim=1)], dim=1)
    weight = getattr(layer.heads, trained).weight
    (grad,), (expected,) = (torch.autograd.grad(out.square().sum(), weight) for out in (stepwise, layer(x)))
    torch.testing.assert_close(grad, expected)


def left_padded(x: torch.Tensor, padding: list[int], per_sample_index: bool):
    """Samples pushed to the right by padding, who is real, and one Places per slot with each sample's own position."""
    total = max(padding) + x.shape[1]
    slots = torch.arange(total)
    padded = 9 * torch.randn(len(padding), total, D, dtype=x.dtype)
    for b, amount in enumerate(padding):
        padded[b, amount : amount + x.shape[1]] = x[b]
    own_B1N = slots - torch.tensor(padding)[:, None, None]
    valid = own_B1N[:, 0] >= 0
    index = own_B1N if per_sample_index else slots
    places = [Places(index[..., t : t + 1], own_B1N[..., t : t + 1, None], (total,)) for t in range(total)]
    return padded, valid, places


@pytest.mark.parametrize("per_sample_index", [False, True], ids=["index of the slot", "index of the sample"])
@pytest.mark.parametrize("name", ["plain", "rotary, interleaved", "rotary, half", "Shaw", "Shaw, keys and values",
                                  "bias table", "window", "window, rotary"])  # fmt: skip
def test_left_padded_samples_decode_as_if_alone(name, per_sample_index):
    layer = LAYERS[name]()
    padding = [0, 3]
    x = torch.randn(B, N, D, dtype=torch.float64)
    padded, valid, places = left_padded(x, padding, per_sample_index)
    cache, out = Cache(), []
    with torch.no_grad():
        for t, place in enumerate(places):
            out.append(layer(padded[:, t : t + 1], valid_BM=valid[:, : t + 1], places=place, cache=cache))
        stepwise = torch.cat(out, dim=1)
        for b, amount in enumerate(padding):
            torch.testing.assert_close(stepwise[b, amount : amount + N], layer(x[b : b + 1])[0])


@pytest.mark.parametrize("grad", [False, True], ids=["no gradient", "gradient"])
@pytest.mark.parametrize("name", ["plain", "rotary, half", "Shaw"])
def test_beams_are_kept_dropped_and_doubled(name, grad):
    layer = LAYERS[name]()
    x = torch.randn(3, 6, D, dtype=torch.float64)
    beams = torch.tensor([2, 0, 0])
    cache = Cache()
    with torch.set_grad_enabled(grad):
        layer(x[:, :4], cache=cache)
        layer(x[:, 4:5], cache=cache)
        cache.reorder(beams)
        out = layer(x[:, 5:], cache=cache)
        expected = layer(torch.cat([x[beams, :5], x[:, 5:]], dim=1))[:, 5:]
    torch.testing.assert_close(out, expected)


def test_places_of_samples_follow_their_beams():
    layer = LAYERS["Shaw"]()
    x = torch.randn(B, N, D, dtype=torch.float64)
    padded, valid, places = left_padded(x, [0, 3], per_sample_index=True)
    swapped = torch.tensor([1, 0])
    cache = Cache()
    with torch.no_grad():
        for t in range(6):
            layer(padded[:, t : t + 1], valid_BM=valid[:, : t + 1], places=places[t], cache=cache)
        cache.reorder(swapped)
        out = layer(
            padded[swapped, 6:7], valid_BM=valid[swapped, :7], places=places[6].of_samples(swapped), cache=cache
        )
        for b, (sample, amount) in enumerate([(1, 3), (0, 0)]):
            alone = layer(x[sample : sample + 1, : 7 - amount])[0, -1]
            torch.testing.assert_close(out[b, 0], alone)


def test_a_memory_is_projected_once_and_follows_the_beams():
    layer = make(heads=Concatenated(D, H, memory_dim=17), neighbours=full())
    x, memory = torch.randn(B, 4, D, dtype=torch.float64), torch.randn(B, M, 17, dtype=torch.float64)
    valid = torch.ones(B, M, dtype=torch.bool)
    valid[1, 5:] = False
    times = []
    layer.heads.to_k.register_forward_hook(lambda *_: times.append(1))
    cache = Cache()
    with torch.no_grad():
        steps = [layer(token, memory, valid_BM=valid, cache=cache) for token in x.split(1, dim=1)]
        assert len(times) == 1
        torch.testing.assert_close(torch.cat(steps, dim=1), layer(x, memory, valid_BM=valid))
        swapped = torch.tensor([1, 0])
        cache.reorder(swapped)
        out = layer(x[:, :1], memory, valid_BM=valid[swapped], cache=cache)
        torch.testing.assert_close(out, layer(x[:, :1], memory[swapped], valid_BM=valid[swapped]))


def test_rotary_memory_is_turned_once():
    layer = make(neighbours=full(), position=Rotary(K))
    x, memory = torch.randn(B, 4, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    cache = Cache()
    steps = [layer(token, memory, places=line(1, start=t), cache=cache) for t, token in enumerate(x.split(1, dim=1))]
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(x, memory))


def test_layers_share_a_cache_without_meeting():
    one, other = LAYERS["plain"](), LAYERS["rotary, half"]()
    x, cache = torch.randn(B, N, D, dtype=torch.float64), Cache()
    with torch.no_grad():
        out = torch.cat([other(one(token, cache=cache), cache=cache) for token in x.split(1, dim=1)], dim=1)
        torch.testing.assert_close(out, other(one(x)))
    assert cache.length(one) == cache.length(other) == N
    assert cache.length(LAYERS["plain"]()) == 0


def test_steps_are_recorded_row_by_row():
    layer = LAYERS["rotary, interleaved"]()
    x, cache = torch.randn(B, N, D, dtype=torch.float64), Cache()
    with torch.no_grad():
        with record(layer) as whole:
            layer(x)
        with record(layer) as steps:
            for token in x.split(1, dim=1):
                layer(token, cache=cache)
    for t, row in enumerate(steps.every(0)):
        torch.testing.assert_close(row[:, :, 0], whole[0][:, :, t, : t + 1])


def test_the_buffer_is_copied_rarely():
    """Doubling: the storage changes a logarithmic number of times, and earlier results are not written over."""
    layer, cache = LAYERS["plain"](), Cache()
    x = torch.randn(1, 100, D, dtype=torch.float64)
    storages, kept = set(), []
    with torch.no_grad():
        for token in x.split(1, dim=1):
            k = layer.heads.keys(token)
            keys, _ = cache.append(layer, k, k)
            storages.add(keys.untyped_storage().data_ptr())
            kept.append((keys, keys.clone()))
    assert len(storages) <= 9
    assert all(torch.equal(keys, copy) for keys, copy in kept)


def test_beams_that_change_places_within_their_sentence_share_its_memory():
    """Only where a row comes from another sentence, or there are more or fewer, is the memory copied."""
    layer = make(neighbours=full())
    x, memory = torch.randn(4, 1, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    cache, sentence = Cache(), torch.arange(B)
    storages, rows = [], []
    with torch.no_grad():
        layer(x[:B], memory, cache=cache)
        for index in ([0, 0, 1, 1], [1, 0, 3, 3], [0, 0, 3, 2], [2, 2, 0, 1], [1, 1, 2, 3], [2, 3]):
            cache.reorder(torch.tensor(index))
            sentence = sentence[index]
            here = x[: len(sentence)]
            torch.testing.assert_close(layer(here, memory[sentence], cache=cache), layer(here, memory[sentence]))
            keys = cache.memory(layer, lambda: pytest.fail("projected again"))[0]
            storages.append(keys.data_ptr())
            rows.append(len(keys))
    assert storages[0] == storages[1] == storages[2] and storages[3] == storages[4]
    assert len({storages[0], storages[3], storages[5]}) == 3
    assert rows == [2, 2, 2, 2, 2, 1]  # one for each sentence, whatever its beams


def test_a_copy_of_a_cache_reorders_its_memory_by_itself():
    layer = make(neighbours=full())
    x, memory = torch.randn(B, 1, D, dtype=torch.float64), torch.randn(B, M, D, dtype=torch.float64)
    one, swapped = Cache(), torch.tensor([1, 0])
    with torch.no_grad():
        layer(x, memory, cache=one)
        one.reorder(swapped)
        other = one.copy()
        other.reorder(swapped)
        torch.testing.assert_close(layer(x, memory, cache=one), layer(x, memory[swapped]))
        torch.testing.assert_close(layer(x, memory, cache=other), layer(x, memory))


def test_reordered_rows_keep_their_room():
    """Beam search reorders at every step: the next token then finds room, as it would have without."""
    layer, cache = LAYERS["plain"](), Cache()
    k = torch.randn(2, H, 7, K, dtype=torch.float64)
    with torch.no_grad():
        cache.append(layer, k[:, :, :4], k[:, :, :4])
        cache.append(layer, k[:, :, 4:5], k[:, :, 4:5])
        index = torch.tensor([1, 1, 0])
        cache.reorder(index)
        (sixth, _), (seventh, values) = (cache.append(layer, *[k[index, :, n : n + 1]] * 2) for n in (5, 6))
    assert sixth.data_ptr() == seventh.data_ptr()
    assert torch.equal(seventh, k[index]) and torch.equal(values, k[index])


def drawn_rows(draw: random.Random, rows: int, width: int) -> list[int]:
    """What a search may do next: change places within sentences, drop some or double all beams, or anything."""
    sentences = [list(range(first, first + width)) for first in range(0, rows, width)]
    kind = draw.choice(["places", "places", "places", "drop", "width", "anything"])
    if kind == "anything":
        return [draw.randrange(rows) for _ in range(draw.randint(1, 7))]
    if kind == "drop" and len(sentences) > 1:
        sentences.remove(draw.choice(sentences))
    wanted = draw.randint(1, 4) if kind == "width" else width
    return [draw.choice(own) for own in sentences for _ in range(wanted)]


def checked_step(cache: Cache, layers: list, together: object, texts: list, num_new: int) -> None:
    """Every layer gets so many new tokens, and gives back what each row has seen, whatever is shared."""
    for layer, of_layer in zip(layers, texts, strict=True):
        k = torch.randn(len(of_layer), H, num_new, K, dtype=torch.float64)
        for row, text in enumerate(of_layer):
            text.append(k[row])
        wanted = torch.stack([torch.cat(text, dim=1) for text in of_layer])
        if layer is not together:
            keys, values = cache.append(layer, k, -k)
            assert torch.equal(keys, wanted) and torch.equal(values, -wanted)
            continue
        width = cache.width(layer)
        k_SHXK = k.view(-1, width, H, num_new, K).transpose(1, 2).flatten(2, 3)
        k_SHMK, v_SHMK, hidden_SWM = cache.append_together(layer, k_SHXK, -k_SHXK)
        assert torch.equal(k_SHMK, -v_SHMK) and (hidden_SWM is None) == (width == 1)
        for row in range(len(of_layer)):
            stored = k_SHMK[row // width]
            if hidden_SWM is not None:
                stored = stored[:, hidden_SWM[row // width, row % width] == 0]
            assert torch.equal(stored, wanted[row])
        assert cache.length(layer) == wanted.shape[2]


@pytest.mark.parametrize("seed", range(12))
def test_beams_find_their_own_tokens_whatever_is_shared(seed, monkeypatch):
    """Against lists of what each row has seen: layers that ask row by row, together, and one that begins later; with
    copies of the cache that go on by themselves."""
    monkeypatch.setattr(beams, "ROOM", 1)
    draw, together = random.Random(seed), torch.nn.Identity()
    layers = [torch.nn.Identity(), together, torch.nn.Identity()]
    going_on = [(Cache(), [[[] for _ in range(5)] for _ in layers])]
    with torch.inference_mode():
        for step in range(40):
            num_layers = 3 if step > 30 else 2
            for number, (cache, texts) in enumerate(going_on):
                checked_step(cache, layers[:num_layers], together, texts[:num_layers], draw.choice([1, 1, 1, 2]))
                index = drawn_rows(draw, len(texts[0]), cache.width(layers[0]))
                cache.reorder(torch.tensor(index))
                going_on[number] = (cache, [[list(of_layer[row]) for row in index] for of_layer in texts])
            if step in (10, 20):
                cache, texts = going_on[0]
                going_on.append((cache.copy(), [[list(text) for text in of_layer] for of_layer in texts]))


def test_rows_that_share_little_are_stored_apart():
    """Many texts that go on from one beginning: each would look past the tokens of all others."""
    layer, cache = torch.nn.Identity(), Cache()
    with torch.inference_mode():
        cache.append(layer, *torch.randn(2, 1, H, 1, K))
        cache.reorder(torch.zeros(200, dtype=torch.long))
        widths = []
        for _ in range(4):
            cache.append(layer, *torch.randn(2, 200, H, 1, K))
            widths.append(cache.width(layer))
    assert widths[-1] == 1 and cache.length(layer) == 5


@pytest.mark.parametrize("index", [[1, 0], [1], []], ids=str)
def test_rows_that_only_move_are_copied_once(index):
    layer, cache = LAYERS["plain"](), Cache()
    k = torch.randn(2, H, 7, K, dtype=torch.float64)
    with torch.no_grad():
        for first, last in ((0, 4), (4, 5)):
            cache.append(layer, *[k[:, :, first:last]] * 2)
        cache.reorder(torch.tensor(index, dtype=torch.long))
        (sixth, _), (seventh, values) = (cache.append(layer, *[k[index, :, n : n + 1]] * 2) for n in (5, 6))
    assert not index or sixth.data_ptr() == seventh.data_ptr()
    assert torch.equal(seventh, k[index]) and torch.equal(values, k[index])


def test_tokens_that_no_beam_has_any_more_are_forgotten():
    layer, cache, num_steps = torch.nn.Identity(), Cache(), 200
    with torch.inference_mode():
        cache.append(layer, *torch.randn(2, 2, H, 1, K))
        cache.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
        for _ in range(num_steps):
            k, _, hidden = cache.append_together(layer, *torch.randn(2, 2, H, 3, K))
            cache.reorder(torch.tensor([1, 1, 1, 3, 3, 3]))
    assert k.shape[2] == hidden.shape[2] <= 2 * num_steps + 3 * (beams.ROOM + 1)
    assert torch.equal((hidden == 0).sum(2), torch.full((2, 3), num_steps + 1))
