"""What would give a wrong result without a word is refused, with a sentence that says what to do."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from mirada.core import (
    Attention,
    BiasTable,
    Cache,
    Concatenated,
    Edges,
    Fixed,
    Grid,
    Learned,
    Mask,
    Places,
    Rotary,
    Shaw,
    Strided,
    Windows,
    causal,
    full,
    line,
    plane,
    window,
)  # fmt: skip
from mirada.core.kernels import TABLE, forced
from mirada.errors import MiradaError

B, H, N, M, D = 2, 3, 35, 7, 12


def layer(**parts) -> Attention:
    return Attention(Concatenated(D, H), **parts).eval()


@pytest.mark.parametrize("valid", [
    torch.ones(B, N), torch.ones(B, N, dtype=torch.int64), torch.ones(B, 1, dtype=torch.bool),
    torch.ones(N, dtype=torch.bool), torch.ones(1, N, dtype=torch.bool),
], ids=lambda valid: f"{tuple(valid.shape)} {valid.dtype}")  # fmt: skip
def test_padding_is_one_boolean_for_every_key(valid):
    """Numbers would be added to the logits; one column would be taken for all."""
    with pytest.raises(MiradaError, match=r"valid_BM is .*: must be \(2, 35\) of booleans"):
        layer()(torch.randn(B, N, D), valid_BM=valid)


def test_padding_in_a_decoding_step_speaks_of_all_keys():
    cache, x = Cache(), torch.randn(B, N, D)
    with torch.no_grad():
        layer_ = layer(neighbours=causal())
        layer_(x[:, :5], cache=cache)
        with pytest.raises(MiradaError, match="those in the cache too"):
            layer_(x[:, 5:6], valid_BM=torch.ones(B, 1, dtype=torch.bool), cache=cache)


@pytest.mark.parametrize("neighbours", [Grid(1), Windows((5, 7))], ids=str)
def test_rules_on_a_plane_need_a_plane(neighbours):
    x = torch.randn(B, N, D)
    with pytest.raises(MiradaError, match=r"looks around on a plane .* give plane\(height, width\)"):
        layer(neighbours=neighbours)(x)
    with pytest.raises(MiradaError, match="looks around on a plane"):
        layer(neighbours=neighbours)(x, x, places=plane(5, 7))  # a memory without places is a line
    layer(neighbours=neighbours)(x, x[:, :6], places=plane(5, 7), memory_places=plane(2, 3))


@pytest.mark.parametrize("position", [BiasTable((5, 7), H), Shaw(D // H, 2)], ids=str)
def test_places_on_a_plane_and_on_a_line_are_not_compared(position):
    x = torch.randn(B, N, D)
    with pytest.raises(MiradaError, match=r"cannot be compared|met places"):
        layer(position=position)(x, x, places=line(N), memory_places=plane(5, 7))


@pytest.mark.parametrize("position", [None, Rotary(D // H)], ids=["no position", "rotary"])
@pytest.mark.parametrize("num_tokens", [1, N])
def test_every_token_has_a_place(position, num_tokens):
    with pytest.raises(MiradaError, match=f"{num_tokens} tokens were given with places for {N + 1}"):
        layer(neighbours=causal(), position=position)(torch.randn(B, num_tokens, D), places=line(N + 1))


def test_rotary_positions_are_as_wide_as_the_heads():
    """Narrower ones would leave channels unturned, which is what `rotary_dim` is for."""
    with pytest.raises(MiradaError, match=r"Rotary\(head_dim=2\) met heads of width 4"):
        layer(position=Rotary(2))(torch.randn(B, N, D))


@pytest.mark.parametrize("make", [
    lambda: Strided(0), lambda: Fixed(3, 5), lambda: Fixed(0, 0), lambda: Grid(-1), lambda: Windows((0, 3)),
    lambda: Windows(7),
])  # fmt: skip
def test_neighbourhoods_that_make_no_sense(make):
    with pytest.raises(MiradaError, match=r"(Strided|Fixed|Grid|Windows)\("):
        make()


@pytest.mark.parametrize("parts", [
    {"neighbours": window(2)}, {"position": Shaw(D // H, 2)}, {"position": Rotary(D // H)},
], ids=str)  # fmt: skip
def test_a_step_of_cross_attention_says_where_its_query_stands_if_it_matters(parts):
    cross, cache = layer(**parts), Cache()
    x, memory = torch.randn(B, 5, D), torch.randn(B, M, D)
    with torch.no_grad():
        with pytest.raises(MiradaError, match="needs `places`"):
            cross(x[:, :1], memory, cache=cache)
        steps = [cross(x[:, t : t + 1], memory, places=line(1, start=t), cache=cache) for t in range(5)]
        torch.testing.assert_close(torch.cat(steps, dim=1), cross(x, memory))


def test_a_cache_serves_one_memory():
    cross, cache = layer(), Cache()
    with torch.no_grad():
        cross(torch.randn(B, 1, D), torch.randn(B, M, D), cache=cache)
        with pytest.raises(MiradaError, match="a memory of 7 tokens and was given one of 9"):
            cross(torch.randn(B, 1, D), torch.randn(B, 9, D), cache=cache)


@pytest.mark.parametrize("copied", [Cache.copy, copy.deepcopy], ids=["copy", "deepcopy"])
@pytest.mark.parametrize("grad", [False, True], ids=["no gradient", "gradient"])
def test_a_copied_cache_goes_on_by_itself(copied, grad):
    attention, cache = layer(neighbours=causal(), position=Rotary(D // H)), Cache()
    beginning, ends = torch.randn(B, 5, D), torch.randn(2, B, 4, D)
    with torch.set_grad_enabled(grad):
        for token in beginning.split(1, dim=1):
            attention(token, cache=cache)
        caches = [cache, copied(cache)]
        # One token of each in turn, so that one writing over the other would show.
        steps = [[attention(end[:, t : t + 1], cache=c) for end, c in zip(ends, caches, strict=True)] for t in range(4)]
        for end, out in zip(ends, zip(*steps, strict=True), strict=True):
            torch.testing.assert_close(torch.cat(out, dim=1), attention(torch.cat([beginning, end], dim=1))[:, 5:])


def test_learned_positions_follow_the_places_of_some_tokens_in_any_order():
    """As when patches are hidden or shuffled: the row of the table is the cell, not the number of the token."""
    learned, cells = Learned((5, 7), D, num_extra=1), plane(5, 7)
    some = torch.randperm(N)[:11]
    places = Places(torch.arange(12), cells.coords_NA[some], (5, 7), num_extra=1)
    torch.testing.assert_close(learned.table(places)[1:], learned.weight[1:][some])
    torch.testing.assert_close(learned.table(places)[0], learned.weight[0])
    larger = plane(10, 14)
    some = torch.randperm(140)[:11]
    places = Places(torch.arange(12), larger.coords_NA[some], (10, 14), num_extra=1)
    whole = learned.table(plane(10, 14, num_extra=1))
    torch.testing.assert_close(learned.table(places)[1:], whole[1:][some])


def test_edges_of_a_large_graph_given_in_32_bits():
    num_nodes = 100_003
    edges = Edges(torch.tensor([[99_999, 7], [100_002, 11]], dtype=torch.int32), num_nodes, num_nodes)
    assert edges.edge_2E.tolist() == [[7, 99_999], [11, 100_002]]


@pytest.mark.parametrize("kernel", ["fused", "reference"])
def test_a_memory_without_tokens_gives_zeros_before_the_output_projection(kernel):
    assert kernel in {known.name for known in TABLE}
    attention = layer()
    with forced(kernel):
        out = attention(torch.randn(B, M, D), torch.empty(B, 0, D))
    torch.testing.assert_close(out, attention.heads.to_out.bias.expand(B, M, D))


def test_rules_move_with_their_layer():
    """The meta device stands for any other one."""
    edges, mask = Edges(torch.randint(0, N, (2, 60)), N, N), Mask(torch.rand(N, N) < 0.5)
    model = nn.Sequential(layer(neighbours=edges), layer(neighbours=mask & causal() | full()))
    x = torch.randn(B, N, D)
    expected = model.double()(x.double())
    assert model[0].attend.neighbours.edge_2E.dtype == torch.int64
    torch.testing.assert_close(model.float()(x).double(), expected, atol=1e-5, rtol=1e-4)
    model.to("meta")
    assert model[0].attend.neighbours.edge_2E.device.type == "meta"
    assert model[1].attend.neighbours.one.one.allowed_NM.device.type == "meta"
    assert edges.edge_2E.device.type == "cpu"  # the caller's own is left alone


@pytest.mark.parametrize("rows", [7, 700])
def test_what_replaces_or_hears_a_projection_works_at_every_length(rows):
    """The three projections become one product for long inputs, which must not go past an adapter or a hook."""

    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    attention, x = layer(), torch.randn(1, rows, D)
    heard = []
    attention.heads.to_k.register_forward_hook(lambda *_: heard.append(1))
    attention(x)
    assert heard == [1]
    attention = layer()
    doubled = Doubled(D, D)
    doubled.load_state_dict(attention.heads.to_v.state_dict())
    plain = attention(x)
    attention.heads.to_v = doubled
    torch.testing.assert_close(attention(x), 2 * plain)
